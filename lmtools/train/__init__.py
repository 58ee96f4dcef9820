"""The one training loop."""

from lmtools.train.loop import Stopped, train

__all__ = ["Stopped", "train"]
