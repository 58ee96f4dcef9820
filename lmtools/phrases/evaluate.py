"""Words of a glossary's phrases beside all others: their error rates, recall, precision, false
alarms.

The words of a reference that are inside a phrase are the phrase words; an error is of them if it
is at such a word, or if it inserts a word of a phrase. A phrase is found as often as the hypothesis
has it, at most as often as the reference has; what the hypothesis has beyond that are false alarms.
B-WER and U-WER are those of Le et al. 2021 (Contextualized Streaming End-to-End Speech Recognition
with Trie-Based Deep Biasing and Shallow Fusion); their errors add up to those of the WER.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lmtools.evaluate.edits import Alignment, align
from lmtools.evaluate.significance import RESAMPLES, interval, resample
from lmtools.phrases.glossary import Glossary
from lmtools.phrases.matching import PhraseAutomaton, split_word

# Statistics of a hypothesis, which add up over utterances.
COUNTS = (
    *("phrase errors", "phrase words", "other errors", "other words"),
    *("found", "phrases", "claimed"),
)
PLACES = {name: place for place, name in enumerate(COUNTS)}
FALSE_ALARMS = "false alarms"
# Figure -> numerator, denominator, in percent.
RATES = {
    "B-WER": ("phrase errors", "phrase words"),
    "U-WER": ("other errors", "other words"),
    "recall": ("found", "phrases"),
    "precision": ("found", "claimed"),
}
F1 = "F1"
FIGURES = (*RATES, F1)


class Span(NamedTuple):
    """A phrase in the words of a text, `start` to `end` (excluded), as the glossary has it."""

    start: int
    end: int
    written: str


def find_spans(words: Sequence[str], automaton: PhraseAutomaton) -> list[Span]:
    tokens = [(token, place) for place, word in enumerate(words) for token in split_word(word)]
    chosen = automaton.choose([token for token, _ in tokens])
    return [Span(tokens[o.start][1], tokens[o.end - 1][1] + 1, o.written) for o in chosen]


@dataclass(frozen=True)
class PhraseAlignment:
    """A hypothesis beside its reference, both as words, and the phrases in each."""

    ref: Sequence[str]
    hyp: Sequence[str]
    alignment: Alignment
    ref_spans: Sequence[Span]
    hyp_spans: Sequence[Span]

    @classmethod
    def of(cls, ref: str, hyp: str, automaton: PhraseAutomaton) -> "PhraseAlignment":
        """Align two texts and find the phrases in them."""
        words = ref.split(), hyp.split()
        spans = (find_spans(side, automaton) for side in words)
        return cls(*words, align(*words), *spans)

    def missed(self) -> list[Span]:
        """Return the reference's phrases that lack in the hypothesis, wrong words first."""
        wrong = {place for tag, place, _ in self.alignment.edits if tag != "insert"}
        return list_surplus(self.ref_spans, self.hyp_spans, wrong)

    def false_alarms(self) -> list[Span]:
        """Return the phrases of the hypothesis that the reference has not, or not so often."""
        wrong = {place for tag, _, place in self.alignment.edits if tag != "delete"}
        return list_surplus(self.hyp_spans, self.ref_spans, wrong)

    def count(self) -> np.ndarray:
        """Return the statistics of COUNTS, integers (7,)."""
        ref_places = {place for span in self.ref_spans for place in range(*span[:2])}
        hyp_places = {place for span in self.hyp_spans for place in range(*span[:2])}
        errors = sum(
            at in ref_places if tag != "insert" else place in hyp_places
            for tag, at, place in self.alignment.edits
        )
        sides = [Counter(span.written for span in s) for s in (self.ref_spans, self.hyp_spans)]
        return np.array(
            [
                *(errors, len(ref_places)),
                *(len(self.alignment.edits) - errors, len(self.ref) - len(ref_places)),
                *((sides[0] & sides[1]).total(), sides[0].total(), sides[1].total()),
            ],
            dtype=np.int64,
        )


def list_surplus(spans: Sequence[Span], others: Sequence[Span], wrong: set[int]) -> list[Span]:
    """Return the spans beyond those of `others`, those first that hold `wrong` places."""
    left = Counter(span.written for span in spans) - Counter(span.written for span in others)
    surplus = []
    for span in sorted(spans, key=lambda span: wrong.isdisjoint(range(*span[:2]))):
        if left[span.written] > 0:
            left[span.written] -= 1
            surplus.append(span)
    return sorted(surplus)


def count_texts(refs: Mapping[str, str], hyps: Mapping[str, str], glossary: Glossary) -> np.ndarray:
    """Return statistics of COUNTS (utterances, 7); a missing hypothesis is an empty one."""
    rows = [align_phrases(utt, ref, hyps, glossary).count() for utt, ref in refs.items()]
    return np.stack(rows) if rows else np.zeros((0, len(COUNTS)), dtype=np.int64)


def align_phrases(utt: str, ref: str, hyps: Mapping[str, str], glossary: Glossary):
    return PhraseAlignment.of(ref, hyps.get(utt, ""), glossary.unweighted(utt))


def rate(sums: np.ndarray, figure: str) -> np.ndarray:
    """Return a figure in percent (...,) from statistics (..., 7); NaN where it is of nothing."""
    if figure == F1:
        above = 2 * sums[..., PLACES["found"]]
        below = sums[..., PLACES["phrases"]] + sums[..., PLACES["claimed"]]
    else:
        above, below = (sums[..., PLACES[name]] for name in RATES[figure])
    return 100 * above / np.where(below > 0, below, np.nan)


def false_alarms(sums: np.ndarray) -> np.ndarray:
    """Return the phrases in hypotheses that are not said (...,) from statistics (..., 7)."""
    return sums[..., PLACES["claimed"]] - sums[..., PLACES["found"]]


@dataclass(frozen=True)
class PhraseEvaluation:
    """Statistics of COUNTS (utterances, 7), and the seconds of speech (None: unknown)."""

    statistics: np.ndarray
    seconds: float | None = None

    @property
    def total(self) -> np.ndarray:
        """Return the statistics of all utterances (7,)."""
        return self.statistics.sum(0)

    @property
    def false_alarms(self) -> int:
        return int(false_alarms(self.total))

    def score(self, figure: str) -> float | None:
        """Return one of FIGURES in percent; None where it is of nothing."""
        value = float(rate(self.total, figure))
        return None if np.isnan(value) else value

    def intervals(self, seed: int = 1) -> dict[str, tuple[float, float] | None]:
        """Return 95% intervals of FIGURES by the bootstrap over utterances; None of nothing."""
        sums = resample(self.statistics, seed, RESAMPLES)
        return {
            figure: None if self.score(figure) is None else interval(rate(sums, figure))
            for figure in FIGURES
        }

    def per_hour(self, count: float) -> float | None:
        """Return a count by hour of speech; None where the seconds are not known."""
        return 3600 * count / self.seconds if self.seconds else None


@dataclass(frozen=True)
class PhraseDifference:
    """Difference of two systems in a figure, first minus second, its 95% interval and two-sided p,
    of the paired bootstrap; all None where the figure of either is of nothing.
    """

    difference: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None


def compare_phrases(
    first: PhraseEvaluation, second: PhraseEvaluation, seed: int = 1
) -> dict[str, PhraseDifference]:
    """Compare two systems in FIGURES and FALSE_ALARMS by the paired bootstrap."""
    width = len(COUNTS)
    sums = resample(np.hstack([first.statistics, second.statistics]), seed, RESAMPLES)
    measures = {figure: lambda rows, figure=figure: rate(rows, figure) for figure in FIGURES}
    results = {}
    for name, measure in (measures | {FALSE_ALARMS: false_alarms}).items():
        gap = float(measure(first.total) - measure(second.total))
        if np.isnan(gap):
            results[name] = PhraseDifference()
            continue
        gaps = measure(sums[:, :width]) - measure(sums[:, width:])
        tail = min((~(gaps < 0)).sum() + 1, (~(gaps > 0)).sum() + 1) / (len(gaps) + 1)
        results[name] = PhraseDifference(gap, interval(gaps), float(min(1, 2 * tail)))
    return results


MISSED, FALSE = "missed", "false alarm"
FOUND, LOST, AVOIDED = "found", "lost", "false alarm avoided"


def list_errors(
    refs: Mapping[str, str], hyps: Mapping[str, str], glossary: Glossary
) -> list[dict[str, str]]:
    """List missed and unsaid phrases: utterance, kind, phrase, words of both texts there."""
    return [
        row for utt in refs for row in list_own(align_phrases(utt, refs[utt], hyps, glossary), utt)
    ]


def list_own(aligned: PhraseAlignment, utt: str) -> list[dict[str, str]]:
    missed = [
        (span, MISSED, " ".join(aligned.ref[span.start : span.end]), beside(aligned, span, True))
        for span in aligned.missed()
    ]
    false = [
        (span, FALSE, beside(aligned, span, False), " ".join(aligned.hyp[span.start : span.end]))
        for span in aligned.false_alarms()
    ]
    return [
        {"ref": ref, "hyp": hyp, "kind": kind, "utt": utt, "phrase": span.written}
        for span, kind, ref, hyp in missed + false
    ]


def beside(aligned: PhraseAlignment, span: Span, of_ref: bool) -> str:
    """Return the other text's words that are aligned with a span."""
    ref = hyp = 0
    words = []
    for step in aligned.alignment.steps:
        place = ref if of_ref else hyp
        own, other = ("I", "D") if of_ref else ("D", "I")
        if step not in (own, other) and span.start <= place < span.end:
            words.append(aligned.hyp[hyp] if of_ref else aligned.ref[ref])
        ref, hyp = ref + (step != "I"), hyp + (step != "D")
    return " ".join(words)


def list_changes(
    refs: Mapping[str, str],
    systems: tuple[Mapping[str, str], Mapping[str, str]],
    glossary: Glossary,
) -> list[dict[str, str]]:
    """List what the hypotheses of the first of two systems have in phrases that those of the second
    have not: found, lost, false alarm, or avoided; with the utterance and the three texts.
    """
    rows = []
    for utt, ref in refs.items():
        new, old = (system.get(utt, "") for system in systems)
        if new != old:
            sides = [align_phrases(utt, ref, {utt: text}, glossary) for text in (new, old)]
            texts = {"ref": ref, "hyp": new, "was": old}
            rows += [
                {"utt": utt, "kind": kind, "phrase": phrase, **texts}
                for kind, phrase in compare_sides(*sides)
            ]
    return rows


def compare_sides(new: PhraseAlignment, old: PhraseAlignment) -> list[tuple[str, str]]:
    missed, false = (
        [Counter(span.written for span in side) for side in sides]
        for sides in ((new.missed(), old.missed()), (new.false_alarms(), old.false_alarms()))
    )
    kinds = {
        FOUND: missed[1] - missed[0],
        LOST: missed[0] - missed[1],
        FALSE: false[0] - false[1],
        AVOIDED: false[1] - false[0],
    }
    return [(kind, phrase) for kind, phrases in kinds.items() for phrase in phrases.elements()]
