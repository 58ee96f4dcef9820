"""Levenshtein alignment of a hypothesis with its reference: the fewest substitutions, deletions and
insertions.

Where several alignments have that fewest number, the split into substitutions, deletions and
insertions is RapidFuzz's, which is jiwer's. sclite minimises 4 S + 3 (D + I) instead: it accepts a
few errors more for more correct words, so its total is never lower and differs on rare utterances
with three substitutions or more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein


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
