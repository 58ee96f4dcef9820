"""Words of a glossary's phrases beside all others: their error rates, recall, precision, false
alarms, as `lmtools evaluate --words` prints them.

The words of a reference that are inside a phrase are the phrase words; an error is of them if it
is at such a word, or if it inserts a word of a phrase. A phrase is found as often as the hypothesis
has it, at most as often as the reference has; what the hypothesis has beyond that are false alarms.
B-WER and U-WER are those of Le et al. 2021 (Contextualized Streaming End-to-End Speech Recognition
with Trie-Based Deep Biasing and Shallow Fusion); their errors add up to those of the WER.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.evaluate.chance import Interval, Tested, bound_none, interval, judge_draws
from lmtools.evaluate.corpus import References
from lmtools.evaluate.edits import Alignment, align
from lmtools.evaluate.inputs import Texts
from lmtools.evaluate.show import NONE, figure, show_ends
from lmtools.evaluate.significance import RESAMPLES, resample
from lmtools.formats import checks, kaldi_text
from lmtools.phrases.glossary import Glossary, PhraseSpec
from lmtools.phrases.matching import PhraseAutomaton, place_tokens
from lmtools.text.scripts import split_units

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
    tokens = place_tokens(words)
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
        words = split_units(ref), split_units(hyp)
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

    @property
    def units(self) -> int:
        """Return the number of utterances."""
        return len(self.statistics)

    def intervals(self, seed: int = 1) -> dict[str, Interval]:
        """Return 95% intervals of FIGURES by the bootstrap over utterances, of none and of all the
        one-sided ones; None where undefined.
        """
        sums, ends = resample(self.statistics, seed, RESAMPLES), {}
        for name in FIGURES:
            ends[name] = interval(rate(sums, name), self.units)
            if name in RATES and self.units > 1 and (score := self.score(name)) in (0, 100):
                bound = bound_none(float(self.total[PLACES[RATES[name][1]]]))
                ends[name] = (100 - bound, 100.0) if score else (0.0, bound)
        return ends

    def per_hour(self, count: float) -> float | None:
        """Return a count by hour of speech; None where the seconds are not known."""
        return 3600 * count / self.seconds if self.seconds else None


@dataclass(frozen=True)
class PhraseDifference(Tested):
    """Difference of two systems in a figure, first minus second, its 95% interval and two-sided p,
    of the paired bootstrap, and p of the exact sign test of utterances; all None where the figure
    of either is of nothing.
    """

    difference: float | None = None
    interval: Interval = None
    p: float | None = None
    sign_p: float | None = None
    units: int = 0


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
        own = np.nan_to_num(measure(first.statistics) - measure(second.statistics))
        ends = interval(gaps, first.units)
        results[name] = PhraseDifference(gap, ends, *judge_draws(gaps, own), first.units)
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


LISTED = 20  # errors or changes that are printed
SHOWN = 12  # words of a text in one


def describe(evaluation: PhraseEvaluation, seed: int) -> Iterator[str]:
    """Yield a line a figure: value, 95% interval, counts; and one of false alarms."""
    sums = dict(zip(COUNTS, map(int, evaluation.total), strict=True))
    for name, ends in evaluation.intervals(seed).items():
        counts = "" if name == F1 else " ({} of {})".format(*(sums[n] for n in RATES[name]))
        yield f"{name} {figure(evaluation.score(name), ends, '%', evaluation.units)}{counts}"
    hourly = evaluation.per_hour(evaluation.false_alarms)
    rate = "" if hourly is None else f", {hourly:.2f} an hour of {evaluation.seconds:.0f} s"
    yield f"false alarms {evaluation.false_alarms}{rate}"


def describe_differences(differences: Mapping[str, PhraseDifference]) -> Iterator[str]:
    for name, result in differences.items():
        told = NONE
        if result.difference is not None:
            ends = show_ends(result.interval, result.units, "+.2f")
            told = f"{result.difference:+.2f} {ends}; {result.describe()}"
        yield f"difference in {name} {told}"


def make_tree(evaluation: PhraseEvaluation, seed: int) -> dict:
    figures = {
        name: {"score": evaluation.score(name), "interval": ends and list(ends)}
        for name, ends in evaluation.intervals(seed).items()
    }
    counts = dict(zip(COUNTS, map(int, evaluation.total), strict=True))
    alarms = {"false alarms": evaluation.false_alarms}
    hourly = evaluation.per_hour(evaluation.false_alarms)
    alarms |= {} if hourly is None else {"false alarms an hour": hourly}
    return {"figures": figures, "counts": counts, **alarms}


def describe_changes(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    for row in rows[:LISTED]:
        if "was" in row:
            sides = (split_units(row[side]) for side in ("was", "hyp"))
            old, new = (show(words) for words in differ(*sides))
            texts = f"{old} -> {new}"
        else:
            texts = f"said {show(row['ref'].split())}, is {show(row['hyp'].split())}"
        yield f"{row['utt']}: {row['kind']} {row['phrase']!r}: {texts}"
    if len(rows) > LISTED:
        yield f"and {len(rows) - LISTED} more, all of which --out lists"


def differ(first: Sequence[str], second: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    shorter = min(len(first), len(second))
    begin = next((i for i in range(shorter) if first[i] != second[i]), shorter)
    left = shorter - begin
    end = next((i for i in range(left) if first[-1 - i] != second[-1 - i]), left)
    return first[begin : len(first) - end], second[begin : len(second) - end]


def show(words: Sequence[str]) -> str:
    shown = words if len(words) <= SHOWN else [*words[: SHOWN // 2], "..", *words[-SHOWN // 2 :]]
    return repr(" ".join(shown)) if words else "nothing"


def evaluate_words(refs: References, hyp: Texts, against: Texts | None, args) -> dict:
    glossary = PhraseSpec.parse(args.words).load()
    texts = first_references(refs)
    systems = [system.texts for system in (hyp, against) if system]
    seconds = sum_seconds(args.utt2dur, texts) if args.utt2dur else None
    say_lines(glossary.warn_absent(pair for side in (texts, *systems) for pair in side.items()))
    results = [PhraseEvaluation(count_texts(texts, s, glossary), seconds) for s in systems]
    tree = make_tree(results[0], args.seed)
    tree["errors"] = list_errors(texts, hyp.texts, glossary)
    lines = [*describe(results[0], args.seed)]
    if against:
        tree["against"] = make_tree(results[1], args.seed)
        lines += (f"against {against.path}: {row}" for row in describe(results[1], args.seed))
        differences = compare_phrases(*results, args.seed)
        tree["differences"] = {name: dataclasses.asdict(gap) for name, gap in differences.items()}
        tree["changes"] = list_changes(texts, tuple(systems), glossary)
        lines += describe_differences(differences)
    lines += describe_changes(tree["changes" if against else "errors"])
    for line in lines:
        print(line)
    return {"words": tree}


def first_references(refs: References) -> dict[str, str]:
    for utt, ref in refs.refs.items():
        if not isinstance(ref, str):
            raise UserError(f"--words: utterance {utt!r} has {len(ref)} references; give one --ref")
    return dict(refs.refs)


def sum_seconds(path: str, utterances: Iterable[str]) -> float:
    seconds = kaldi_text.read(path)
    if missing := [utt for utt in utterances if utt not in seconds]:
        raise UserError(
            f"{path}: no seconds of utterance {missing[0]!r}; give the utt2dur of this set"
        )
    return sum(checks.number(seconds[utt], path, f"the seconds of {utt!r}") for utt in utterances)
