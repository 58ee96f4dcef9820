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
    """Errors of one or many hypotheses; `length` is the number of reference words (or
    characters).
    """

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
        """Errors in percent of the reference; over an empty reference each insertion is 100%, as
        jiwer has it.
        """
        return 100 * self.errors / max(self.length, 1)

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.substitutions + other.substitutions,
            self.deletions + other.deletions,
            self.insertions + other.insertions,
            self.length + other.length,
        )


def number_units(units: Sequence[str], ids: dict[str, int]) -> list[int]:
    """`units` as numbers, new ones entered into `ids`: RapidFuzz compares hashes, and equal numbers
    are equal words for certain.
    """
    return [ids.setdefault(unit, len(ids)) for unit in units]


@dataclass(frozen=True)
class Alignment:
    """A hypothesis beside its reference; `edits` are RapidFuzz's (replace, delete or insert, place
    in the reference, place in the hypothesis), in order.
    """

    ref: Sequence[str]
    hyp: Sequence[str]
    edits: Sequence[tuple[str, int, int]]

    @property
    def counts(self) -> Counts:
        """The error counts."""
        tags = [tag for tag, _, _ in self.edits]
        return Counts(*map(tags.count, ("replace", "delete", "insert")), len(self.ref))

    @property
    def steps(self) -> list[tuple[str, str | None, str | None]]:
        """Triples (operation, reference word, hypothesis word) in order; the operation is "ok",
        "sub", "del" or "ins".

        The reference word is None in an insertion, the hypothesis word in a deletion.
        """
        steps: list[tuple[str, str | None, str | None]] = []
        at = 0
        for tag, i, j in [*self.edits, ("", len(self.ref), len(self.hyp))]:
            steps += [("ok", word, word) for word in self.ref[at:i]]
            at = i if tag == "insert" else i + 1
            if tag:
                operation = {"replace": "sub", "delete": "del", "insert": "ins"}[tag]
                word = None if tag == "insert" else self.ref[i]
                steps.append((operation, word, None if tag == "delete" else self.hyp[j]))
        return steps


def align(ref: Sequence[str], hyp: Sequence[str]) -> Alignment:
    """Hypothesis `hyp` aligned with reference `ref` (words, or characters): once for its counts and
    its steps.
    """
    ids: dict[str, int] = {}
    edits = Levenshtein.editops(number_units(ref, ids), number_units(hyp, ids))
    return Alignment(ref, hyp, edits.as_list())
