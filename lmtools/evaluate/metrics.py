"""The metrics; each is a function of statistics that add up over utterances, so that tuning and the bootstrap only sum arrays.

METRICS["wer"].statistics(ref, hyps) has one row a hypothesis; METRICS["wer"].score(rows.sum(0)) is the corpus-level figure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lmtools import __version__
from lmtools.evaluate.edits import Counts, errors

BLEU_ORDER = 4


def words(text: str) -> list[str]:
    """The words of `text`: what stands between white space."""
    return text.split()


def characters(text: str) -> str:
    """The characters of `text`, counting one space between words, as jiwer does."""
    return " ".join(text.split())


@dataclass(frozen=True)
class ErrorRate:
    """WER or CER in percent; statistics are substitutions, deletions, insertions and reference length."""

    title: str
    unit: str
    split: Callable[[str], Sequence[str]]
    lower_is_better = True
    width = 4

    def statistics(self, ref: str, hyps: Sequence[str]) -> np.ndarray:
        """Integers (hypotheses, 4): substitutions, deletions, insertions, reference length of each hypothesis."""
        target = self.split(ref)
        counts = [errors(target, self.split(hyp)) for hyp in hyps]
        rows = [(c.substitutions, c.deletions, c.insertions, c.length) for c in counts]
        return np.array(rows, dtype=np.int64).reshape(-1, self.width)

    def score(self, totals: np.ndarray) -> np.ndarray:
        """Percent (...,) from summed statistics (..., 4); over an empty reference each insertion is 100%."""
        totals = np.asarray(totals)
        return 100 * totals[..., :3].sum(-1) / np.maximum(totals[..., 3], 1)

    def gain(self, statistics: np.ndarray) -> np.ndarray:
        """How good each hypothesis is by itself (hypotheses,), higher is better: minus its errors."""
        return -statistics[:, :3].sum(-1)

    def describe(self, total: np.ndarray) -> str:
        """The counts behind a score, in words."""
        counts = Counts(*map(int, total))
        split = f"{counts.substitutions} sub, {counts.deletions} del, {counts.insertions} ins"
        return f"{split}; {counts.length} {self.unit}"

    @property
    def signature(self) -> str:
        """What one must know to compute the figure again."""
        return f"metric:{self.title.lower()}|case:mixed|norm:none|nrefs:1|missing:deleted|version:lmtools-{__version__}"


@dataclass(frozen=True)
class Sacre:
    """A sacrebleu metric over its own statistics; `name` is its class in sacrebleu.metrics, `options` those of corpus scoring.

    A missing hypothesis counts as an empty one.
    """

    title: str
    name: str
    width: int
    lower_is_better: bool = False

    @cached_property
    def corpus(self):
        """sacrebleu's object for corpus scores, imported when first needed: most runs of the command need no BLEU."""
        import sacrebleu.metrics

        metric = getattr(sacrebleu.metrics, self.name)()
        metric.num_refs = 1
        return metric

    @cached_property
    def sentence(self):
        """sacrebleu's object for single sentences: BLEU only up to the orders that the sentence has."""
        import sacrebleu.metrics

        return sacrebleu.metrics.BLEU(effective_order=True) if self.name == "BLEU" else self.corpus

    def statistics(self, ref: str, hyps: Sequence[str]) -> np.ndarray:
        """Floats (hypotheses, width): sacrebleu's own sufficient statistics of each hypothesis."""
        metric = self.corpus
        reference = metric._cache_references([[ref]])[0]
        rows = [metric._compute_segment_statistics(metric._preprocess_segment(hyp), reference) for hyp in hyps]
        return np.array(rows, dtype=np.float64).reshape(-1, self.width)

    def score(self, totals: np.ndarray) -> np.ndarray:
        """The metric (...,) from summed statistics (..., width), as sacrebleu computes it."""
        totals = np.asarray(totals)
        flat = [self.corpus._compute_score_from_stats(row).score for row in totals.reshape(-1, self.width).tolist()]
        return np.array(flat).reshape(totals.shape[:-1])

    def gain(self, statistics: np.ndarray) -> np.ndarray:
        """How good each hypothesis is by itself (hypotheses,), higher is better: its sentence-level score."""
        sign = -1 if self.lower_is_better else 1
        return sign * np.array([self.sentence._compute_score_from_stats(row).score for row in statistics.tolist()])

    def describe(self, total: np.ndarray) -> str:
        """sacrebleu's own account of a BLEU score; '' for the others, which have none."""
        return self.corpus._compute_score_from_stats(np.asarray(total).tolist())._verbose

    @property
    def signature(self) -> str:
        """sacrebleu's signature and our version."""
        return f"metric:{self.title.lower()}|{self.corpus.get_signature()}|missing:empty|by:lmtools-{__version__}"


@dataclass(frozen=True)
class Bleu(Sacre):
    """BLEU with sacrebleu's defaults (13a tokenisation, exponential smoothing), the score vectorised for tuning."""

    def score(self, totals: np.ndarray) -> np.ndarray:
        """BLEU (...,) from summed statistics (..., 10): hypothesis length, reference length, 4 matches, 4 totals.

        The k-th order without a match counts 1 / 2^k matches (NIST smoothing, method 3 of Chen and Cherry 2014).
        """
        totals = np.asarray(totals, dtype=np.float64)
        hyp, ref = totals[..., 0], totals[..., 1]
        matches, ngrams = totals[..., 2 : 2 + BLEU_ORDER], totals[..., 2 + BLEU_ORDER :]
        smooth = 0.5 ** np.cumsum(matches == 0, axis=-1)
        precisions = 100 * np.where(matches > 0, matches, smooth) / np.maximum(ngrams, 1)
        penalty = np.where(hyp < ref, np.exp(1 - ref / np.maximum(hyp, 1)), 1)
        defined = matches.any(-1) & ngrams.all(-1)
        return np.where(defined, penalty * np.exp(np.log(precisions).mean(-1)), 0)


METRICS = {
    "wer": ErrorRate("WER", "words", words),
    "cer": ErrorRate("CER", "characters", characters),
    "bleu": Bleu("BLEU", "BLEU", 2 + 2 * BLEU_ORDER),
    "chrf": Sacre("chrF", "CHRF", 18),
    "ter": Sacre("TER", "TER", 2, lower_is_better=True),
}
