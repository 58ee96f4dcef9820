"""Corpus-level evaluation of one hypothesis an utterance."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lmtools.errors import UserError
from lmtools.evaluate.edits import Alignment
from lmtools.evaluate.metrics import METRICS, ErrorRate


@dataclass(frozen=True)
class Evaluation:
    """A score with what it was computed from: statistics (utterances, width) in the references'
    order, and of an error rate each hypothesis aligned with its reference.
    """

    metric: str
    score: float
    statistics: np.ndarray
    missing: tuple[str, ...]
    signature: str
    alignments: tuple[Alignment, ...] = ()

    @property
    def total(self) -> np.ndarray:
        """Statistics summed over utterances (width,)."""
        return self.statistics.sum(0)


def evaluate(
    refs: Mapping[str, str | tuple[str, ...]],
    hyps: Mapping[str, str],
    metric: str = "wer",
    source="hypotheses",
) -> Evaluation:
    """The metric of `hyps` against `refs`, joined by utterance id.

    Metrics of translation take several references of an utterance. An utterance without hypothesis
    counts as an empty one (all its words deleted) and is listed in `missing`; a hypothesis without
    reference is a UserError that names `source`, and so are no references at all and several for a
    metric that takes one.
    """
    if not refs:
        raise UserError(
            f"{source}: no references to evaluate against; give the reference of each utterance"
        )
    if unknown := [utt for utt in hyps if utt not in refs]:
        raise UserError(
            f"{source}: {len(unknown)} of {len(hyps)} hypotheses have no reference (first"
            f" {unknown[0]!r}); give the references of this set"
        )
    measure = METRICS[metric]
    pairs = [(ref, hyps.get(utt, "")) for utt, ref in refs.items()]
    alignments = ()
    try:
        if isinstance(measure, ErrorRate):
            alignments = tuple(measure.align(ref, hyp) for ref, hyp in pairs)
            statistics = measure.sum_up(alignments)
        else:
            statistics = np.concatenate([measure.statistics(ref, [hyp]) for ref, hyp in pairs])
    except UserError as error:
        raise UserError(f"{source}: {error}") from None
    missing = tuple(utt for utt in refs if utt not in hyps)
    most = max(1 if isinstance(ref, str) else len(ref) for ref in refs.values())
    signature = measure.signature.replace("nrefs:1", f"nrefs:{most}")
    score = float(measure.score(statistics.sum(0)))
    return Evaluation(metric, score, statistics, missing, signature, alignments)
