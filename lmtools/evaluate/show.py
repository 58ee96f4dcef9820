"""Evaluations in words, for people, and as JSON-able trees, for programs; and in parts: by speaker,
by length, by label, and by word.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lmtools.base.errors import UserError
from lmtools.evaluate.chance import FEW, Interval, say_why
from lmtools.evaluate.corpus import Evaluation, References
from lmtools.evaluate.metrics import METRICS, ErrorRate, find_aligner
from lmtools.evaluate.nbest import shown_depths
from lmtools.evaluate.sacre import SacrePaired
from lmtools.evaluate.significance import Bootstrap, GroupTests, MatchedPairs
from lmtools.formats import kaldi_text
from lmtools.formats.nbest.stm import StmSegment
from lmtools.types import EMPTY, SPEAKER

LENGTHS = (5, 10, 20, 40)  # last of each group of lengths, in units of the metric
WORDS, LENGTH = "words", "length"
Segments = Mapping[str, StmSegment]


@dataclass(frozen=True)
class Stratum:
    """Some utterances, by what they have in common, and their statistics summed."""

    name: str
    utterances: int
    total: np.ndarray
    score: float


def split_evaluation(
    evaluation: Evaluation, utts: Sequence[str], name_part: Callable[[str, int], str]
) -> list[Stratum]:
    """Split an evaluation by what `name_part` says of (utterance, length of its reference)."""
    rows: dict[str, list[np.ndarray]] = {}
    lengths = METRICS[evaluation.metric].length(evaluation.statistics)
    for utt, row, length in zip(utts, evaluation.statistics, lengths.tolist(), strict=True):
        rows.setdefault(name_part(utt, int(length)), []).append(row)
    if name_part is name_length:
        rows = dict(sorted(rows.items(), key=lambda item: int(item[0].partition("-")[0])))
    totals = {name: np.sum(part, axis=0) for name, part in rows.items()}
    score = METRICS[evaluation.metric].score
    return [
        Stratum(name, len(rows[name]), total, float(score(total))) for name, total in totals.items()
    ]


def name_length(utt: str, length: int) -> str:
    """Return the group of lengths that the length of a reference falls into."""
    first = 0
    for last in LENGTHS:
        if length <= last:
            return f"{first}-{last}"
        first = last + 1
    return f"{first}-"


def find_namer(
    by: str, segments: Segments, utts: Collection[str] = (), said: Mapping[str, str] = EMPTY
) -> Callable[[str, int], str]:
    """Return what names the part of each of `utts`: speaker (as `said`), NAME=F, label, length;
    else UserError.
    """
    kind, _, path = by.partition("=")
    if by == LENGTH:
        return name_length
    if by == "label" and segments:
        return lambda utt, _: segments[utt].label
    if path and kind.isidentifier() and kind not in (LENGTH, "label", WORDS):
        parts = kaldi_text.read(path)
        return lambda utt, _: look_up(parts, utt, by)
    if by == SPEAKER:
        said = {utt: segment.speaker for utt, segment in segments.items()} or said
        remedy = f"give Kaldi's utt2spk ({by}=UTT2SPK), or the speaker of each list"
        speakers = kaldi_text.find_speakers(utts, said, f"--by {by}", remedy)
        return lambda utt, _: speakers[utt]
    more = "; label needs an stm as --ref and a ctm as --hyp" if kind == "label" else ""
    raise UserError(
        f"--by {by}: parts are speaker, speaker=F (Kaldi's utt2spk), NAME=F (any utt2NAME), length,"
        f" label and {WORDS}{more}"
    )


def look_up(parts: Mapping[str, str], utt: str, by: str) -> str:
    if utt not in parts:
        kind, _, path = by.partition("=")
        raise UserError(f"{path}: has no {kind} of {utt!r}; give the map of these utterances")
    return parts[utt]


@dataclass
class WordErrors:
    """How often each `unit` was taken for which, missed or inserted, and was there at all."""

    unit: str = WORDS
    confusions: Counter = field(default_factory=Counter)
    deletions: Counter = field(default_factory=Counter)
    insertions: Counter = field(default_factory=Counter)
    spoken: Counter = field(default_factory=Counter)

    def add(self, step: str, ref: str, hyp: str) -> None:
        if step != "I":
            self.spoken[ref] += 1
        if step == "S":
            self.confusions[ref, hyp] += 1
        elif step == "D":
            self.deletions[ref] += 1
        elif step == "I":
            self.insertions[hyp] += 1

    def rank_words(self) -> list[tuple[str, int, int]]:
        """Return (word, errors, times spoken) of the words of references, most errors first."""
        errors = self.deletions.copy()
        for (ref, _), times in self.confusions.items():
            errors[ref] += times
        return [(word, times, self.spoken[word]) for word, times in rank(errors)]


def rank(counter: Counter) -> list[tuple]:
    return sorted(counter.items(), key=lambda item: (-item[1], item[0]))


def count_words(refs: References, hyps: Mapping[str, str]) -> WordErrors:
    """Count the errors of hypotheses by unit of the metric, in the alignments of `refs`."""
    errors = WordErrors(find_aligner(refs.metric).unit)
    for utt in refs.refs:
        for step in refs.pairs(utt, hyps.get(utt, "")):
            errors.add(*step)
    return errors


MOST = 20  # lines of a table of words
NONE = "-"  # an undefined figure


def line(evaluation: Evaluation, interval: Interval) -> str:
    """Return one line: score, 95% interval, counts, signature."""
    measure, total = METRICS[evaluation.metric], evaluation.total
    percent = "%" if measure.lower_is_better else ""
    sizes = f"{len(evaluation.statistics)} utterances"
    counts = ", ".join(filter(None, [measure.describe(total), sizes]))
    units = len(evaluation.statistics)
    score = figure(defined(evaluation.metric, total, evaluation.score), interval, percent, units)
    return f"{measure.title} {score} ({counts}) {evaluation.signature}"


def figure(
    score: float | None, interval: Interval = None, percent: str = "", units: int | None = None
) -> str:
    """Return a score; where `units` are given, with the interval over these, or why it has none; a
    dash for an undefined one.
    """
    if score is None:
        return NONE
    return f"{score:.2f}{percent}{'' if units is None else ' ' + show_ends(interval, units)}"


def show_ends(interval: Interval, units: int, form: str = ".2f") -> str:
    """Return an interval over so many units in brackets, or why there is none."""
    ends = f"{NONE} ({say_why(units)})"
    if interval:
        ends = ", ".join(format(end, form) for end in interval)
    return f"[95% CI {ends}]"


def defined(metric: str, total: np.ndarray, value):
    """Return a figure of summed statistics; None where it is undefined."""
    return value if METRICS[metric].length(total) else None


def part_lines(metric: str, by: str, parts: Sequence[Stratum]) -> Iterator[str]:
    """Yield a table of parts of an evaluation: name, utterances, score, and its counts."""
    measure = METRICS[metric]
    width = max(len(part.name) for part in parts) if parts else 0
    in_units = f", in {measure.unit}" if by == "length" and measure.unit != WORDS else ""
    yield f"by {by}{in_units}:"
    for part in parts:
        counts = measure.describe(part.total)
        percent = "%" if measure.lower_is_better else ""
        score = figure(defined(metric, part.total, part.score), percent=percent)
        score = f"{measure.title} {score}"
        yield f"  {part.name:{width}}  {part.utterances:5} utterances  {score}  {counts}".rstrip()


def word_lines(errors: WordErrors) -> Iterator[str]:
    """Yield the most frequent confusions, deletions, insertions and wrong units, MOST of each."""
    confusions = [(" -> ".join(map(quote, pair)), n) for pair, n in rank(errors.confusions)]
    tables = {
        "confusions": confusions,
        "deletions": [(quote(unit), n) for unit, n in rank(errors.deletions)],
        "insertions": [(quote(unit), n) for unit, n in rank(errors.insertions)],
    }
    for title, rows in tables.items():
        total = sum(times for _, times in rows)
        yield f"{title}: {total}" + (f", the {MOST} most frequent" if len(rows) > MOST else "")
        yield from (f"  {times:5}  {words}" for words, times in rows[:MOST])
    yield f"{errors.unit} with most errors, of how many times they are spoken:"
    for word, wrong, spoken in errors.rank_words()[:MOST]:
        yield f"  {wrong:5} of {spoken}  {quote(word)}"


def quote(unit: str) -> str:
    return repr(unit) if unit.isspace() else unit


def parts_tree(metric: str, parts: Sequence[Stratum]) -> list[dict]:
    return [
        {
            "name": part.name,
            "utterances": part.utterances,
            "score": defined(metric, part.total, part.score),
            **count_tree(metric, part.total),
        }
        for part in parts
    ]


def words_tree(errors: WordErrors) -> dict:
    return {
        "unit": errors.unit,
        "confusions": [[*pair, times] for pair, times in rank(errors.confusions)],
        "deletions": [list(row) for row in rank(errors.deletions)],
        "insertions": [list(row) for row in rank(errors.insertions)],
        "words": [list(row) for row in errors.rank_words()],
    }


def missing_line(evaluation: Evaluation) -> str:
    missing = evaluation.missing
    return (
        f"{len(missing)} of {len(evaluation.statistics)} utterances have no hypothesis and count as"
        f" empty (first {missing[0]!r})"
    )


def writing_line(errors: int) -> str:
    """Return how many errors are of writing alone (edits.py)."""
    return f"of these {errors:,} are writing (blanks, apostrophes, hyphens, digits)"


def oracle_line(metric: str, curve: np.ndarray) -> str:
    return f"oracle {METRICS[metric].title} by list depth: " + ", ".join(
        f"{depth}: {curve[depth - 1]:.2f}" for depth in shown_depths(len(curve))
    )


def bootstrap_line(result: Bootstrap) -> str:
    share = (
        ""
        if result.p is None
        else (
            f"better in {100 * result.improvement:.2f}% of {result.resamples} paired bootstrap"
            f" resamples (seed {result.seed}); "
        )
    )
    ends = show_ends(result.difference_interval, result.units, "+.2f")
    return f"difference {result.difference:+.2f} {ends}; {share}{result.describe()}"


def groups_line(by: str, result: GroupTests) -> str:
    kind = by.partition("=")[0]
    return (
        f"by whole {kind}s ({result.groups}: {result.better} better, {result.worse} worse):"
        f" {result.describe(kind)}"
    )


def sacre_line(result: SacrePaired) -> str:
    seed = f"seed {result.seed}" if result.seed is not None else "no seed"
    settings = (
        f"sacreBLEU's paired bootstrap of {result.resamples} resamples ({seed}): mean"
        f" {result.mean:.2f} +- {NONE if result.half_width is None else f'{result.half_width:.2f}'}"
    )
    p = result.describe()
    return f"difference {result.difference:+.2f}; {settings}, {p} {result.signature}"


def matched_pairs_line(result: MatchedPairs) -> str:
    """Return the matched pairs test in one line, with the sign test where it needs that."""
    mean = NONE if result.mean is None else f"{result.mean:+.3f}"
    line = f"matched pairs (MAPSSWE): {result.segments} segments, {mean} errors a segment, "
    if result.z is None:
        line += f"z undefined ({'the same difference in all' if result.segments else 'none'})"
    else:
        line += f"z = {result.z:.2f}, p = {result.p:.2g}"
    if result.z is None or result.segments < FEW:
        sides = f"{result.better} better, {result.worse} worse"
        line += f"; exact sign test of segments: {sides}, p = {result.sign_p:.2g}"
    return line


def tree(evaluation: Evaluation, interval: Interval) -> dict:
    """Return an evaluation as JSON holds it; of error rates also the counts."""
    metric, total = evaluation.metric, evaluation.total
    counts = count_tree(metric, total)
    return {
        "metric": metric,
        "score": defined(metric, total, evaluation.score),
        "interval": defined(metric, total, interval and list(interval)),
        "utterances": len(evaluation.statistics),
        **counts,
        "missing": list(evaluation.missing),
        "signature": evaluation.signature,
    }


def count_tree(metric: str, total: np.ndarray) -> dict:
    if not isinstance(METRICS[metric], ErrorRate):
        return {"statistics": total.tolist()}
    names = ("substitutions", "deletions", "insertions", "length")
    return dict(zip(names, total.tolist(), strict=True))
