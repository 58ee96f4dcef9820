"""Pairs of verses, one from each translation, whose similarity is given by where the verses stand;
no grade shows in the lengths.

Pairs come in fours, one of each grade: first one of the same verse, then for each other grade one
that is about as long on each side and whose sides differ in length by as much.
"""

import random
from collections.abc import Iterable, Iterator
from functools import cached_property
from math import log

from lmtools.base.errors import UserError
from lmtools.text import NORMALISERS
from lmtools.types import SentencePair

# same verse, next verse, same chapter, different books
SIMILARITY = {"same": 5.0, "next": 2.0, "chapter": 1.0, "apart": 0.0}
WORDS = range(5, 31)  # of each side
AWAY = 4  # verses of grade "chapter" are at least so far apart
RUN = 8  # what shares so many words in a row with the text is a parallel passage
# two verses that share so many words in a row, in either translation, make no pair of a low grade
NEAR = 6
# at most this share of the different words of a "same" pair is in both sides: the rest is for more
# than counting words
OVERLAP = 0.5
SLACK = 2  # words that a side may differ from that of its four, both sides alike
LETTERS = 0.08  # and how much the natural logarithm of its letters may differ,
RATIO = 0.02  # and that of the ratio of the sides' letters
normal = NORMALISERS["librispeech"]


class Verse:
    """One verse in both translations; lengths are those of the normalised text."""

    def __init__(self, book: str, chapter: int, number: int, web: str, kjv: str):
        self.book, self.chapter, self.number = book, chapter, number
        self.printed = web, kjv
        self.plain = normal(web), normal(kjv)

    @cached_property
    def words(self) -> tuple[int, int]:
        return tuple(len(side.split()) for side in self.plain)

    @cached_property
    def letters(self) -> tuple[float, float]:
        """Return Natural logarithms of the numbers of characters."""
        return tuple(log(len(side)) for side in self.plain)

    @cached_property
    def overlap(self) -> float:
        """Return the share of the different words of both sides that both have."""
        first, second = (set(side.split()) for side in self.plain)
        return len(first & second) / len(first | second)

    @cached_property
    def near(self) -> set[str]:
        return runs(self.plain, NEAR)


Pair = tuple[Verse, Verse]  # whose first translation and whose second


def runs(lines: Iterable[str], length: int = RUN) -> set[str]:
    """Return every run of `length` normalised words; of shorter lines the line itself, with its
    ends, so that only equal lines match.
    """
    ngrams = set()
    for line in lines:
        words = normal(line).split()
        ngrams.update(" ".join(words[i : i + length]) for i in range(len(words) - length + 1))
        ngrams.add(f"<{' '.join(words)}>")
    return ngrams


def graded(
    verses: list[Verse], each: int, seen: set[str], draw: random.Random
) -> list[SentencePair]:
    """Return `each` pairs of every grade, shuffled, either translation on the left; no verse is in
    two pairs.

    A verse is left out if one of its sides has not 5 to 30 words, is printed with digits or shares
    a run of eight words with `seen`; UserError if there are not enough verses.
    """
    free = [verse for verse in verses if usable(verse) and seen.isdisjoint(runs(verse.printed))]
    draw.shuffle(free)
    chosen: list[SentencePair] = []
    for model in [verse for verse in free if verse.overlap <= OVERLAP]:
        if model in free and (four := quartet(model, free)):
            taken = {verse for pair in four.values() for verse in pair}
            free = [verse for verse in free if verse not in taken]
            chosen += [
                SentencePair(*sides(*pair, draw), SIMILARITY[grade]) for grade, pair in four.items()
            ]
        if len(chosen) == each * len(SIMILARITY):
            draw.shuffle(chosen)
            return chosen
    raise UserError(
        f"mini_grades.py: {len(chosen)} pairs from {len(verses)} verses; hold out more books"
    )


def usable(verse: Verse) -> bool:
    return all(words in WORDS for words in verse.words) and not any(
        c.isdigit() for side in verse.printed for c in side
    )


def quartet(model: Verse, free: list[Verse]) -> dict[str, Pair] | None:
    """Return a pair of each grade, all alike in length, of verses of which none is in two; None if
    there is none.
    """
    four = {"same": (model, model)}
    for grade in ("next", "chapter", "apart"):
        taken = {verse for pair in four.values() for verse in pair}
        pairs = (
            pair
            for pair in candidates(model, grade, free)
            if taken.isdisjoint(pair) and pair[0].near.isdisjoint(pair[1].near)
        )
        if (pair := next(pairs, None)) is None:
            return None
        four[grade] = pair
    return four


def candidates(model: Verse, grade: str, free: list[Verse]) -> Iterator[Pair]:
    """Yield the pairs of this grade that are as long as the model's sides, in the order of
    `free`.
    """
    seconds = [verse for verse in free if alike(verse, model, 1)]
    for first in free:
        if alike(first, model, 0):
            for second in seconds:
                if alike_in_difference(first, second, model) and relation(first, second) == grade:
                    yield first, second


def alike(verse: Verse, model: Verse, side: int) -> bool:
    return (
        abs(verse.words[side] - model.words[side]) <= SLACK
        and abs(verse.letters[side] - model.letters[side]) < LETTERS
    )


def alike_in_difference(first: Verse, second: Verse, model: Verse) -> bool:
    """Return whether the sides of a pair differ in words and letters as the model's do."""
    words = first.words[0] - second.words[1] == model.words[0] - model.words[1]
    return (
        words
        and abs(first.letters[0] - second.letters[1] - (model.letters[0] - model.letters[1]))
        < RATIO
    )


def relation(first: Verse, second: Verse) -> str:
    """Return the grade of two verses, or none of them where these are two or three verses apart or
    in different chapters of a book.
    """
    if first.book != second.book:
        return "apart"
    if first.chapter != second.chapter:
        return "none"
    away = abs(first.number - second.number)
    return "same" if not away else "next" if away == 1 else "chapter" if away >= AWAY else "none"


def sides(first: Verse, second: Verse, draw: random.Random) -> list[str]:
    """Return the first translation of one verse and the second of the other, in any order."""
    both = [first.printed[0], second.printed[1]]
    draw.shuffle(both)
    return both
