"""Discourse relations of real text, implicit ones made from explicit ones (Marcu and Echihabi
2002): what a connective joins, without the connective, labelled with what it says;
make_tasks.py writes them.
"""

from collections.abc import Iterator
from typing import NamedTuple

# the label's third level is of PDTB 3
LABELS = {
    "contingency.cause": "contingency.cause.reason",
    "comparison.concession": "comparison.concession.arg2-as-denier",
    "contingency.condition": "contingency.condition.arg2-as-cond",
    "contingency.purpose": "contingency.purpose.arg2-as-goal",
    "expansion.conjunction": "expansion.conjunction",
    "temporal.asynchronous": "temporal.asynchronous.precedence",
}
# connectives that begin a line, which then goes on from the line before
INITIAL = {
    "FOR": "contingency.cause",
    "BUT": "comparison.concession",
    "YET": "comparison.concession",
    "NEVERTHELESS": "comparison.concession",
    "HOWEVER": "comparison.concession",
    "MOREOVER": "expansion.conjunction",
    "ALSO": "expansion.conjunction",
    "AND": "expansion.conjunction",
    "THEN": "temporal.asynchronous",
    "AFTERWARD": "temporal.asynchronous",
}
# those within a line
MEDIAL = {
    "BECAUSE": "contingency.cause",
    "BUT": "comparison.concession",
    "THOUGH": "comparison.concession",
    "ALTHOUGH": "comparison.concession",
    "IF": "contingency.condition",
    "SO THAT": "contingency.purpose",
    "UNTIL": "temporal.asynchronous",
}
# what a clause begins with after a connective: FOR HE, but not FOR A DAY
SUBJECTS = {
    *("I", "YOU", "HE", "SHE", "IT", "WE", "THEY", "THERE", "THE", "MY", "YOUR", "HIS", "HER"),
    *("ITS", "OUR", "THEIR", "EVERYONE", "NO", "NOBODY", "YAHWEH", "GOD"),
}
# what leads a line before THEN, so that it says a condition or a time
LEADING = {"IF", "WHEN", "AS", "WHOEVER", "AFTER"}
SHORTEST, LONGEST = 4, 30  # words of an argument
BLOCK = 400  # lines of a document


class Relation(NamedTuple):
    """Two arguments, their words counted from 1 in their document, and what joins them."""

    document: int
    begins: tuple[int, int]
    units: tuple[list[str], list[str]]
    connective: str
    label: str

    @property
    def texts(self) -> list[str]:
        """Return the arguments."""
        return [" ".join(unit) for unit in self.units]

    def row(self) -> list[str]:
        """Return the columns of DISRPT; a sentence is the argument, as it stands without
        connective.
        """
        spans = [
            f"{begin}-{begin + len(unit) - 1}"
            for begin, unit in zip(self.begins, self.units, strict=True)
        ]
        return [
            f"MINI_bible_{self.document:03d}", *spans, *self.texts, *spans, *self.texts, "1<2",
            "implicit", LABELS[self.label], self.label,
        ]  # fmt: skip


HEADER = [
    *("doc", "unit1_toks", "unit2_toks", "unit1_txt", "unit2_txt", "s1_toks", "s2_toks"),
    *("unit1_sent", "unit2_sent", "dir", "rel_type", "orig_label", "label"),
]


def relations(lines: list[list[str]]) -> Iterator[Relation]:
    """Yield the relations in the lines of a text, at most one a line."""
    begin, before, before_begin = 1, [], 0
    for number, words in enumerate(lines):
        document = number // BLOCK + 1
        if number % BLOCK == 0:
            begin, before = 1, []
        parts = medial(words) or initial(before, words)
        if parts:
            first, connective, second, label = parts
            start = begin + len(words) - len(second)
            yield Relation(
                document,
                (before_begin if first is before else begin, start),
                (first, second),
                connective,
                label,
            )
        before, before_begin, begin = words, begin, begin + len(words)


def medial(words: list[str]):
    """Return the clauses that the only connective in a line joins; None if there are no such."""
    matches = []
    for connective, label in MEDIAL.items():
        split = connective.split()
        for place in range(1, len(words) - len(split)):
            after = words[place + len(split) :]
            if words[place : place + len(split)] == split:
                matches.append((words[:place], connective, after, label))
    if len(matches) == 1 and words[0] not in INITIAL and fit(matches[0][0], matches[0][2]):
        return matches[0] if words[0] not in LEADING else None
    return None


def initial(before: list[str], words: list[str]):
    """Return two lines of which the second begins with a connective; None if they are no such."""
    label = INITIAL.get(words[0])
    if label and before and before[0] not in LEADING and fit(before, words[1:]):
        return before, words[0], words[1:], label
    return None


def fit(first: list[str], second: list[str]) -> bool:
    """Return whether both are as long as wanted and the second begins like a clause."""
    right = all(SHORTEST <= len(words) <= LONGEST for words in (first, second))
    return right and second[0] in SUBJECTS
