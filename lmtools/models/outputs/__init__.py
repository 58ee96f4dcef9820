"""Output layers with their training criteria; what all of them declare is in base.py."""

from lmtools.models.outputs.base import OutputLayer, Targets
from lmtools.models.outputs.full import FULL
from lmtools.models.outputs.sampled import SAMPLED
from lmtools.models.outputs.softmax import Adaptive, Softmax

CRITERIA = {"softmax": Softmax, **FULL, **SAMPLED, "adaptive": Adaptive}

__all__ = ["CRITERIA", "OutputLayer", "Softmax", "Targets"]
