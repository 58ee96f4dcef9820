"""Weights of first-pass and language-model scores, tuned on a development set, and hypotheses
chosen with them.
"""

from lmtools.rescore.apply import check_signatures, rescore
from lmtools.rescore.features import LENGTHS, Features, ScoreColumns, gather, read_columns, set_hash
from lmtools.rescore.risk import Risk, minimum_risk
from lmtools.rescore.tuning import FORMS, TuningOptions, tune
from lmtools.rescore.weights import Dev, Weights, load, save

__all__ = [
    "FORMS",
    "LENGTHS",
    "Dev",
    "Features",
    "Risk",
    "ScoreColumns",
    "TuningOptions",
    "Weights",
    "check_signatures",
    "gather",
    "load",
    "minimum_risk",
    "read_columns",
    "rescore",
    "save",
    "set_hash",
    "tune",
]
