"""Weights of first-pass and language-model scores, tuned on a development set, and hypotheses chosen with them."""

from lmtools.rescore.apply import rescore
from lmtools.rescore.features import Features, gather, read_columns, set_hash
from lmtools.rescore.tuning import FORMS, TUNABLE, Options, tune
from lmtools.rescore.weights import Dev, Weights, load, save

__all__ = [
    "FORMS",
    "TUNABLE",
    "Dev",
    "Features",
    "Options",
    "Weights",
    "gather",
    "load",
    "read_columns",
    "rescore",
    "save",
    "set_hash",
    "tune",
]
