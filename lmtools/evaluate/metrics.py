"""The metrics; each is a function of statistics that add up over utterances, so that tuning and the
bootstrap only sum arrays.

METRICS["wer"].statistics(ref, hyps) has one row a hypothesis; METRICS["wer"].score(rows.sum(0)) is
the corpus-level figure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lmtools import __version__
from lmtools.errors import UserError
from lmtools.evaluate.edits import Alignment, Counts, align
from lmtools.evaluate.sacre import BLEU_ORDER, CHRF_ORDER, Sacre, bleu, chrf, sentence_bleu, ter


def words(text: str) -> list[str]:
    """The words of `text`: what stands between white space."""
    return text.split()


def characters(text: str) -> str:
    """The characters of `text`, counting one space between words, as jiwer does."""
    return " ".join(text.split())


@dataclass(frozen=True)
class ErrorRate:
    """WER or CER in percent; statistics are substitutions, deletions, insertions and reference
    length.
    """

    title: str
    unit: str
    split: Callable[[str], Sequence[str]]
    lower_is_better = True
    width = 4

    def statistics(self, ref: str, hyps: Sequence[str]) -> np.ndarray:
        """Integers (hypotheses, 4): substitutions, deletions, insertions, reference length of each
        hypothesis.
        """
        return self.sum_up([self.align(ref, hyp) for hyp in hyps])

    def align(self, ref: str, hyp: str) -> Alignment:
        """A hypothesis aligned in the metric's units; UserError where there are several
        references.
        """
        if not isinstance(ref, str):
            raise UserError(
                f"{len(ref)} references of an utterance: {self.title} takes one; give one, or take"
                " bleu, chrf or ter"
            )
        return align(self.split(ref), self.split(hyp))

    def sum_up(self, alignments: Sequence[Alignment]) -> np.ndarray:
        """`statistics` of hypotheses that are aligned already."""
        counts = [alignment.counts for alignment in alignments]
        rows = [(c.substitutions, c.deletions, c.insertions, c.length) for c in counts]
        return np.array(rows, dtype=np.int64).reshape(-1, self.width)

    def score(self, totals: np.ndarray) -> np.ndarray:
        """Percent (...,) from summed statistics (..., 4); over an empty reference each insertion is
        100%.
        """
        totals = np.asarray(totals)
        return 100 * totals[..., :3].sum(-1) / np.maximum(totals[..., 3], 1)

    def gain(self, statistics: np.ndarray) -> np.ndarray:
        """How good each hypothesis is by itself (...,) from statistics (..., 4), higher is better:
        minus its errors.
        """
        return -statistics[..., :3].sum(-1)

    def cap(self, statistics: np.ndarray) -> np.ndarray:
        """Statistics (..., 4) in which no hypothesis has more errors than its reference has units
        (one, if it is empty): insertions beyond that are not counted.
        """
        beyond = statistics[..., :3].sum(-1) - np.maximum(statistics[..., 3], 1)
        capped = statistics.copy()
        capped[..., 2] -= np.maximum(beyond, 0)
        return capped

    def describe(self, total: np.ndarray) -> str:
        """The counts behind a score, in words."""
        counts = Counts(*map(int, total))
        split = f"{counts.substitutions} sub, {counts.deletions} del, {counts.insertions} ins"
        return f"{split}; {counts.length} {self.unit}"

    @property
    def signature(self) -> str:
        """What one must know to compute the figure again."""
        rules = "case:mixed|norm:none|nrefs:1|missing:deleted"
        return f"metric:{self.title.lower()}|{rules}|version:lmtools-{__version__}"


METRICS = {
    "wer": ErrorRate("WER", "words", words),
    "cer": ErrorRate("CER", "characters", characters),
    "bleu": Sacre("BLEU", "BLEU", 2 + 2 * BLEU_ORDER, bleu, sentence_bleu),
    "chrf": Sacre("chrF", "CHRF", 3 * CHRF_ORDER, chrf),
    "ter": Sacre("TER", "TER", 2, ter, lower_is_better=True),
}
