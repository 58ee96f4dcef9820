"""Weights of first-pass and language-model scores, tuned on a development set, and hypotheses
chosen with them.
"""

from lmtools.rescore.apply import check_signatures, rescore, weighted_totals
from lmtools.rescore.crossing import Crossing
from lmtools.rescore.features import (
    DERIVED,
    LENGTHS,
    LOOP,
    Features,
    ScoreColumns,
    gather,
    read_columns,
    set_hash,
)
from lmtools.rescore.folds import FoldPlan, parse_folds
from lmtools.rescore.marks import mark
from lmtools.rescore.risk import Risk, minimum_risk
from lmtools.rescore.systems import (
    SystemPlan,
    list_lengths,
    of_system,
    read_scores,
    read_systems,
    score_files,
    select_columns,
    tune_systems,
)
from lmtools.rescore.tuning import FORMS, OBJECTIVES, TuningOptions, tune
from lmtools.rescore.weights import (
    Dev,
    SystemFacts,
    SystemLM,
    Weights,
    describe_lm,
    describe_system,
    load,
    parse_weights,
    save,
)

__all__ = [
    "DERIVED",
    "FORMS",
    "LENGTHS",
    "LOOP",
    "OBJECTIVES",
    "Crossing",
    "Dev",
    "Features",
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
    "gather",
    "list_lengths",
    "load",
    "mark",
    "minimum_risk",
    "of_system",
    "parse_folds",
    "parse_weights",
    "read_columns",
    "read_scores",
    "read_systems",
    "rescore",
    "save",
    "score_files",
    "select_columns",
    "set_hash",
    "tune",
    "tune_systems",
    "weighted_totals",
]
