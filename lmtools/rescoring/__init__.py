"""Weights of first-pass and language-model scores, tuned on a development set, and hypotheses
chosen with them.
"""

from lmtools.rescoring.defaults import is_default, load_weights
from lmtools.rescoring.features import (
    DERIVED,
    ScoreColumns,
    find_divisors,
    gather,
    make_columns,
    read_columns,
)
from lmtools.rescoring.folds import FoldPlan, parse_folds
from lmtools.rescoring.lists import (
    check_signatures,
    rescore,
    rescore_lists,
    tune_lists,
    warn_unseen,
    weighted_totals,
)
from lmtools.rescoring.risk import Risk, minimum_risk
from lmtools.rescoring.systems import SystemPlan, of_system, read_scores
from lmtools.rescoring.tuning import Crossing, tune
from lmtools.rescoring.tuning_options import OBJECTIVES, TuningOptions
from lmtools.rescoring.weights import (
    Dev,
    SystemFacts,
    SystemLM,
    Weights,
    describe_lm,
    describe_system,
    mark,
    parse_weights,
)

__all__ = [
    "DERIVED",
    "OBJECTIVES",
    "Crossing",
    "Dev",
    "FoldPlan",
    "Risk",
    "ScoreColumns",
    "SystemFacts",
    "SystemLM",
    "SystemPlan",
    "TuningOptions",
    "Weights",
    "check_signatures",
    "describe_lm",
    "describe_system",
    "find_divisors",
    "gather",
    "is_default",
    "load_weights",
    "make_columns",
    "mark",
    "minimum_risk",
    "of_system",
    "parse_folds",
    "parse_weights",
    "read_columns",
    "read_scores",
    "rescore",
    "rescore_lists",
    "tune",
    "tune_lists",
    "warn_unseen",
    "weighted_totals",
]
