"""WER, CER, BLEU, chrF and TER at corpus level, oracles of N-best lists, and the significance of differences."""

from lmtools.evaluate.corpus import Evaluation, evaluate
from lmtools.evaluate.edits import Counts, align, errors
from lmtools.evaluate.metrics import METRICS
from lmtools.evaluate.nbest import nbest_errors, nbest_statistics, oracle, reference
from lmtools.evaluate.significance import Bootstrap, MatchedPairs, confidence, matched_pairs, paired_bootstrap

__all__ = [
    "METRICS",
    "Bootstrap",
    "Counts",
    "Evaluation",
    "MatchedPairs",
    "align",
    "confidence",
    "errors",
    "evaluate",
    "matched_pairs",
    "nbest_errors",
    "nbest_statistics",
    "oracle",
    "paired_bootstrap",
    "reference",
]
