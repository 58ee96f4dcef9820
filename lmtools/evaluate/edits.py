"""Levenshtein alignment of a hypothesis with its reference: the fewest substitutions, deletions and
insertions.

Where several alignments have that fewest number, the split into substitutions, deletions and
insertions is RapidFuzz's, which is jiwer's. sclite minimises 4 S + 3 (D + I) instead: it accepts a
few errors more for more correct words, so its total is never lower and differs on rare utterances
with three substitutions or more.

Errors of writing alone: `goodbye` for `good bye`, `i'm` for `im`, `21` for `twenty one`. These are
no errors of hearing.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rapidfuzz.distance import Levenshtein

from lmtools.base.errors import UserError
from lmtools.text.normaliser import APOSTROPHES
from lmtools.text.unify import DASHES
from lmtools.text.whisper import apply_rules

JOINTS = re.compile(rf"[\s\-{APOSTROPHES}{''.join(map(chr, DASHES))}]+")
APART = 2  # correct units between errors that belong to two regions
SPAN, NUMERALS = 8, 3  # words of a number at most, and pieces of it in digits
LARGE = 1 << 16  # pairs of units in a region, in which its parts are not looked for


@dataclass(frozen=True)
class Counts:
    """Errors of hypotheses; `length` is the number of reference words (or characters)."""

    substitutions: int
    deletions: int
    insertions: int
    length: int

    @property
    def errors(self) -> int:
        """Substitutions, deletions and insertions together."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> float:
        """Errors in percent; over an empty reference each insertion is 100%, as in jiwer."""
        return 100 * self.errors / max(self.length, 1)


def number_units(units: Sequence[str], ids: dict[str, int]) -> list[int]:
    """Return `units` as numbers, equal for equal units alone; new ones are entered into `ids`."""
    return [ids.setdefault(unit, len(ids)) for unit in units]


@dataclass(frozen=True, slots=True)
class Alignment:
    """A hypothesis beside a reference of `length` units, and RapidFuzz's `edits` in order."""

    length: int
    edits: Sequence[tuple[str, int, int]]

    @property
    def counts(self) -> Counts:
        tags = [tag for tag, _, _ in self.edits]
        return Counts(*map(tags.count, LETTERS), self.length)

    @property
    def steps(self) -> str:
        """A letter a step: C correct, S substituted, D deleted, I inserted."""
        steps, at = [], 0
        for tag, place, _ in self.edits:
            steps += ["C" * (place - at), LETTERS[tag]]
            at = place + (tag != "insert")
        return "".join([*steps, "C" * (self.length - at)])


LETTERS = {"replace": "S", "delete": "D", "insert": "I"}


def align(ref: Sequence[str], hyp: Sequence[str]) -> Alignment:
    """Return hypothesis `hyp` aligned with reference `ref`: counts and steps."""
    ids: dict[str, int] = {}
    edits = Levenshtein.editops(number_units(ref, ids), number_units(hyp, ids))
    return Alignment(len(ref), edits.as_list())


def pair_words(
    alignment: Alignment, ref: Sequence[str], hyp: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    """Yield (C, S, D or I, word of the reference, word of the hypothesis) of an alignment."""
    left, right = iter(ref), iter(hyp)
    for step in alignment.steps:
        yield step, "" if step == "I" else next(left), "" if step == "D" else next(right)


def count_writing(
    pairs: Iterable[tuple[str, str, str]], parts: bool = True
) -> tuple[int, Counter[tuple[str, str]]]:
    """Count the errors of writing alone in what `pair_words` yields: those of a region (errors with
    fewer than APART correct units between them) beyond what an alignment has in which equal letters
    cost nothing, once blanks, apostrophes and hyphens are taken from both sides, nor digits for
    English words of the same number. Return them, and how often what of the reference stood beside
    what of the hypothesis. Without `parts` a region is writing or not: a blank is one character.
    """
    errors, found = 0, Counter()
    region: list[tuple[str, str, str]] = []
    correct = APART
    for pair in (*pairs, *[("C", "", "")] * APART):
        correct = correct + 1 if pair[0] == "C" else 0
        if correct < APART:
            region.append(pair)
        elif region:
            ref = [unit for step, unit, _ in region if step != "I"]
            hyp = [unit for step, _, unit in region if step != "D"]
            left, spans = align_letters(ref, hyp, parts)
            errors += sum(step != "C" for step, *_ in region) - left
            found.update(spans)
            region = []
    return errors, found


def align_letters(
    ref: Sequence[str], hyp: Sequence[str], parts: bool = True
) -> tuple[int, list[tuple[str, str]]]:
    """Return the fewest errors where spans of equal letters are none, and these spans, as short as
    they can be; without `parts`, or in a region too LARGE for them, the whole is one or not.
    """
    rows, columns = len(ref), len(hyp)
    if rows * columns > LARGE or not parts:
        same = strip_joints("".join(ref)) == strip_joints("".join(hyp))
        return (
            (0, [(" ".join(ref), " ".join(hyp))]) if same else (align(ref, hyp).counts.errors, [])
        )
    gaps = [[int(bool(strip_joints(unit))) for unit in side] for side in (ref, hyp)]
    best: dict[tuple[int, int], tuple[int, int, int]] = {(rows, columns): (0, 0, 0)}
    for i in range(rows, -1, -1):
        for j in range(columns, -1, -1):
            steps = [(gaps[0][i], 1, 0)] if i < rows else []
            steps += [(gaps[1][j], 0, 1)] if j < columns else []
            if i < rows and j < columns:
                steps.insert(0, (int(ref[i] != hyp[j]), 1, 1))
                steps += [(0, *span) for span in spans_at(ref[i:], hyp[j:])] * steps[0][0]
            if steps:
                best[i, j] = min((cost + best[i + a, j + b][0], a, b) for cost, a, b in steps)
    i = j = 0
    spans = []
    while (i, j) != (rows, columns):
        total, a, b = best[i, j]
        pair = " ".join(ref[i : i + a]), " ".join(hyp[j : j + b])
        if total == best[i + a, j + b][0] and pair[0] != pair[1]:
            spans.append(pair)
        i, j = i + a, j + b
    return best[0, 0][0], spans


def spans_at(ref: Sequence[str], hyp: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield sizes of the shortest spans of equal letters with which both sides begin, and of those
    of one number in digits and in words.
    """
    a, b, left, right = 1, 1, strip_joints(ref[0]), strip_joints(hyp[0])
    while left != right and (left.startswith(right) or right.startswith(left)):
        shorter = len(left) < len(right)
        if (a == len(ref)) if shorter else (b == len(hyp)):
            break
        left, a = (left + strip_joints(ref[a]), a + 1) if shorter else (left, a)
        right, b = (right, b) if shorter else (right + strip_joints(hyp[b]), b + 1)
    if left == right:
        yield a, b
    sides = [has_digits(units[0]) for units in (ref, hyp)]
    if sides[0] != sides[1]:
        digits, words = (ref, hyp) if sides[0] else (hyp, ref)
        for a in range(1, min(NUMERALS, len(digits)) + 1):
            for b in range(1, min(SPAN, len(words)) + 1):
                if say_number(" ".join(digits[:a])) == say_number(" ".join(words[:b])) != "":
                    yield (a, b) if sides[0] else (b, a)


def has_digits(*texts: str) -> bool:
    return any(map(str.isdecimal, "".join(texts)))


@lru_cache(1 << 16)
def strip_joints(text: str) -> str:
    return JOINTS.sub("", text)


@lru_cache(1 << 16)
def say_number(text: str) -> str:
    """Return a number as Whisper's English rules write it; '' where they are not installed."""
    try:
        return strip_joints(apply_rules(text, "english")) if text.isascii() else ""
    except UserError:
        return ""
