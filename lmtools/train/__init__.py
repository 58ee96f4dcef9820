"""The one training loop."""

from lmtools.train.loop import Stopped, train
from lmtools.train.parallel import AlreadyReported, first_process

__all__ = ["AlreadyReported", "Stopped", "first_process", "train"]
