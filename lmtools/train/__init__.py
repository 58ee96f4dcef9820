"""The one training loop."""

from lmtools.train.loop import Stopped, train
from lmtools.train.parallel import Told, first_process

__all__ = ["Stopped", "Told", "first_process", "train"]
