"""WER, CER, BLEU, chrF and TER at corpus level, oracles of N-best lists, and the significance of
differences.
"""

from lmtools.evaluate.corpus import Evaluation, evaluate
from lmtools.evaluate.edits import Counts, align, errors
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
from lmtools.evaluate.significance import (
    Bootstrap,
    MatchedPairs,
    SacrePaired,
    confidence,
    matched_pairs,
    paired_bootstrap,
    sacre_paired,
)

__all__ = [
    "METRICS",
    "Bootstrap",
    "Counts",
    "Evaluation",
    "MatchedPairs",
    "SacrePaired",
    "align",
    "confidence",
    "errors",
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
    "sacre_paired",
    "sentence_signature",
]
