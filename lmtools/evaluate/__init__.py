"""WER, CER, MER, BLEU, chrF and TER at corpus level, oracles of N-best lists, and the significance
of differences.
"""

from lmtools.evaluate.corpus import Evaluation, References, evaluate
from lmtools.evaluate.edits import Alignment, Counts, align
from lmtools.evaluate.metrics import METRICS
from lmtools.evaluate.nbest import (
    fill_empty,
    nbest_errors,
    nbest_statistics,
    oracle,
    oracle_curve,
    oracle_texts,
    reference,
)
from lmtools.evaluate.pairs import pair_gains, sentence_signature
from lmtools.evaluate.sacre import SacrePaired
from lmtools.evaluate.significance import (
    Bootstrap,
    GroupTests,
    MatchedPairs,
    compare_groups,
    confidence,
    matched_pairs,
    paired_bootstrap,
    resample,
)

__all__ = [
    "METRICS",
    "Alignment",
    "Bootstrap",
    "Counts",
    "Evaluation",
    "GroupTests",
    "MatchedPairs",
    "References",
    "SacrePaired",
    "align",
    "compare_groups",
    "confidence",
    "evaluate",
    "fill_empty",
    "matched_pairs",
    "nbest_errors",
    "nbest_statistics",
    "oracle",
    "oracle_curve",
    "oracle_texts",
    "pair_gains",
    "paired_bootstrap",
    "reference",
    "resample",
    "sentence_signature",
]
