"""An evaluation in parts: by speaker, by length, by label, and by word."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lmtools.base.errors import UserError
from lmtools.evaluate.corpus import Evaluation, References
from lmtools.evaluate.edits import Alignment
from lmtools.evaluate.metrics import METRICS, find_aligner
from lmtools.formats import kaldi_text
from lmtools.formats.nbest.stm import StmSegment

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


def name_speaker(utt: str) -> str:
    """Return what stands before the first `-` or `_` of an utterance's id, as in sclite."""
    ends = [place for mark in "-_" if (place := utt.find(mark)) > 0]
    return utt[: min(ends)] if ends else utt


def name_length(utt: str, length: int) -> str:
    """Return the group of lengths that the length of a reference falls into."""
    first = 0
    for last in LENGTHS:
        if length <= last:
            return f"{first}-{last}"
        first = last + 1
    return f"{first}-"


def find_namer(by: str, segments: Segments) -> Callable[[str, int], str]:
    """Return what names an utterance's part: speaker, NAME=F, label, length; else UserError."""
    kind, _, path = by.partition("=")
    if by == LENGTH:
        return name_length
    if by == "label" and segments:
        return lambda utt, _: segments[utt].label
    if path and kind.isidentifier() and kind not in (LENGTH, "label", WORDS):
        parts = kaldi_text.read(path)
        return lambda utt, _: look_up(parts, utt, by)
    if by == "speaker":
        return lambda utt, _: segments[utt].speaker if segments else name_speaker(utt)
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
    aligner = find_aligner(refs.metric)
    errors = WordErrors(aligner.unit)
    for utt, ref in refs.refs.items():
        text = hyps.get(utt, "")
        first = ref if isinstance(ref, str) else ref[0]
        for step in pair_words(refs.align(utt, text), aligner.split(first), aligner.split(text)):
            errors.add(*step)
    return errors


def pair_words(
    alignment: Alignment, ref: Sequence[str], hyp: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    """Yield (C, S, D or I, word of the reference, word of the hypothesis) of an alignment."""
    if hasattr(alignment, "pairs"):  # the door nist's, which knows the words of its own path
        yield from alignment.pairs
        return
    left, right = iter(ref), iter(hyp)
    for step in alignment.steps:
        yield step, "" if step == "I" else next(left), "" if step == "D" else next(right)
