"""Output layers with their training criteria; what all of them declare is in base.py."""

from lmtools.outputs.adaptive import Adaptive
from lmtools.outputs.base import OutputLayer
from lmtools.outputs.full import FULL
from lmtools.outputs.sampled import SAMPLED
from lmtools.outputs.softmax import Softmax
from lmtools.outputs.targets import Targets

CRITERIA = {"softmax": Softmax, **FULL, **SAMPLED, "adaptive": Adaptive}

__all__ = ["CRITERIA", "OutputLayer", "Softmax", "Targets"]
