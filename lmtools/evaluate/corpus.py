"""Corpus-level evaluation of one hypothesis an utterance."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.grammar import check_whole
from lmtools.evaluate.chance import Interval
from lmtools.evaluate.edits import Alignment, count_writing, pair_words
from lmtools.evaluate.metrics import METRICS, ErrorRate, find_aligner
from lmtools.evaluate.significance import MatchedPairs, confidence, matched_pairs


@dataclass(frozen=True, repr=False)
class Evaluation:
    """A score with its statistics (utterances, width), in the references' order. It prints with two
    digits, as `WER 8.87%`; `score` has all.
    """

    metric: str
    score: float
    statistics: np.ndarray
    missing: tuple[str, ...]
    signature: str

    def __repr__(self) -> str:
        measure = METRICS[self.metric]
        return f"{measure.title} {self.score:.2f}{'%' * measure.lower_is_better}"

    @property
    def total(self) -> np.ndarray:
        """Statistics summed over utterances (width,)."""
        return self.statistics.sum(0)

    def interval(self, seed: int = 1) -> Interval:
        """Return the 95% confidence interval of the score, by the bootstrap over utterances; None
        where these are fewer than two or all alike (of no errors see `confidence`).
        """
        return confidence(self.statistics, self.metric, check_whole(seed, "seed", 0))


class References:
    """The references of a set under a metric: a hypothesis is compared with its reference once,
    however many systems chose it.

    `refs` has the reference of each utterance, or all where there are several.
    """

    def __init__(self, refs: Mapping[str, str | tuple[str, ...]], metric: str = "wer"):
        self.refs, self.metric = refs, metric
        self.rows: dict[str, dict[str, np.ndarray]] = {utt: {} for utt in refs}
        self.alignments: dict[str, dict[str, Alignment]] = {utt: {} for utt in refs}

    def texts(self) -> Iterator[str]:
        for ref in self.refs.values():
            yield from (ref,) if isinstance(ref, str) else ref

    def align(self, utt: str, text: str) -> Alignment:
        known = self.alignments[utt]
        if text not in known:
            ref = self.refs[utt]
            ref = ref if isinstance(ref, str) else ref[0]
            known[text] = find_aligner(self.metric).align(ref, text)
        return known[text]

    def pairs(self, utt: str, text: str) -> Iterator[tuple[str, str, str]]:
        """Yield what `pair_words` does of a hypothesis and its (first) reference."""
        split, ref = find_aligner(self.metric).split, self.refs[utt]
        ref = ref if isinstance(ref, str) else ref[0]
        return pair_words(self.align(utt, text), split(ref), split(text))

    def writing(self, hyps: Mapping[str, str]) -> tuple[int, Counter[tuple[str, str]]]:
        """Return the errors of writing alone, as of `count_writing`, of an error rate."""
        errors, found, parts = 0, Counter(), METRICS[self.metric].unit != "characters"
        for utt in self.refs if isinstance(METRICS[self.metric], ErrorRate) else ():
            if self.align(utt, text := hyps.get(utt, "")).counts.errors:
                more, spans = count_writing(self.pairs(utt, text), parts)
                errors += more
                found.update(spans)
        return errors, found

    def statistics(self, utt: str, texts: Sequence[str]) -> np.ndarray:
        """Return the metric's statistics of some hypotheses of an utterance (hypotheses, width)."""
        measure, ref, known = METRICS[self.metric], self.refs[utt], self.rows[utt]
        if is_wer(self.metric) and isinstance(ref, str):
            return measure.sum_up([self.align(utt, text) for text in texts])
        new = list(dict.fromkeys(text for text in texts if text not in known))
        known.update(zip(new, measure.statistics(ref, new), strict=True))
        return np.stack([known[text] for text in texts])

    def evaluate(self, hyps: Mapping[str, str], source="hypotheses") -> Evaluation:
        """Return the metric of `hyps`, joined by utterance id.

        Metrics of translation take several references of an utterance. An utterance without
        hypothesis counts as an empty one (all its words deleted) and is listed in `missing`; a
        hypothesis without reference is a UserError that names `source`, and so are no references at
        all and several for a metric that takes one.
        """
        refs, measure = self.refs, METRICS[self.metric]
        if not refs:
            raise UserError(
                f"{source}: no references to evaluate against; give the reference of each utterance"
            )
        if unknown := [utt for utt in hyps if utt not in refs]:
            raise UserError(
                f"{source}: {len(unknown)} of {len(hyps)} hypotheses have no reference (first"
                f" {unknown[0]!r}); give the references of this set"
            )
        try:
            statistics = np.concatenate([self.statistics(utt, [hyps.get(utt, "")]) for utt in refs])
        except UserError as error:
            raise UserError(f"{source}: {error}") from None
        missing = tuple(utt for utt in refs if utt not in hyps)
        numbers = {1 if isinstance(ref, str) else len(ref) for ref in refs.values()}
        number = "var" if len(numbers) > 1 else numbers.pop()  # as sacreBLEU signs it
        signature = re.sub(r"\bnrefs:\w+", f"nrefs:{number}", measure.signature)
        score = float(measure.score(statistics.sum(0)))
        return Evaluation(self.metric, score, statistics, missing, signature=signature)

    def compare(self, first: Mapping[str, str], second: Mapping[str, str]) -> MatchedPairs:
        return matched_pairs(
            *([self.align(utt, hyps.get(utt, "")) for utt in self.refs] for hyps in (first, second))
        )


def is_wer(metric: str) -> bool:
    """Return whether a metric is the word error rate, by whatever rules."""
    return metric.partition(":")[0] == "wer"


def evaluate(
    refs: Mapping[str, str | tuple[str, ...]],
    hyps: Mapping[str, str],
    metric: str = "wer",
    source="hypotheses",
) -> Evaluation:
    """Return the metric of one system's `hyps` against `refs`, as of `References.evaluate`."""
    return References(refs, metric).evaluate(hyps, source)
