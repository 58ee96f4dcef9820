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


def errors(ref: Sequence[str], hyp: Sequence[str]) -> Counts:
    """The error counts of hypothesis `hyp` against reference `ref` (words, or characters)."""
    ids: dict[str, int] = {}
    tags = [
        tag
        for tag, _, _ in Levenshtein.editops(
            number_units(ref, ids), number_units(hyp, ids)
        ).as_list()
    ]
    return Counts(tags.count("replace"), tags.count("delete"), tags.count("insert"), len(ref))


def align(ref: Sequence[str], hyp: Sequence[str]) -> list[tuple[str, str | None, str | None]]:
    """Triples (operation, reference word, hypothesis word) in order; the operation is "ok", "sub",
    "del" or "ins".

    The reference word is None in an insertion, the hypothesis word in a deletion.
    """
    ids: dict[str, int] = {}
    pairs: list[tuple[str, str | None, str | None]] = []
    for tag, i, i_end, j, j_end in Levenshtein.opcodes(
        number_units(ref, ids), number_units(hyp, ids)
    ).as_list():
        if tag == "delete":
            pairs += [("del", word, None) for word in ref[i:i_end]]
        elif tag == "insert":
            pairs += [("ins", None, word) for word in hyp[j:j_end]]
        else:
            operation = "ok" if tag == "equal" else "sub"
            pairs += [(operation, *words) for words in zip(ref[i:i_end], hyp[j:j_end], strict=True)]
    return pairs
