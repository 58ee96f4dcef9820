"""Distinct n-grams of a text with their numbers of occurrences, by sorting packed integers."""

from array import array
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count as numbers

import numpy as np

from lmtools.ngram.sentences import BOS, EOS, SYMBOLS


@dataclass(frozen=True, eq=False)
class Grams:
    """The distinct n-grams of one order in suffix order: sorted from the last word backwards.

    All of shape (N,). `first`: the first word's id; `suffix`, `context`: the index, among the
    n-grams one shorter, of this one without its first or its last word; `occurrences`: in the text,
    between one <s> and one </s> a sentence. A unigram's index is its word's id, and its suffix and
    context are 0.
    """

    first: np.ndarray
    suffix: np.ndarray
    context: np.ndarray
    occurrences: np.ndarray

    def __len__(self) -> int:
        return len(self.first)


def index(sentences: Iterable[list[str]], more: Iterable[str] = ()) -> tuple[list[str], np.ndarray]:
    """The vocabulary by appearance, SYMBOLS first, and (T,) int32 ids of all sentences, BOS to EOS.

    The words of `more` that the text lacks come last.
    """
    ids = array("i")
    number_of = defaultdict(numbers().__next__)
    look_up = number_of.__getitem__
    for symbol in SYMBOLS:
        look_up(symbol)
    for words in sentences:
        ids.append(BOS)
        ids.extend(map(look_up, words))
        ids.append(EOS)
    for word in more:
        look_up(word)
    return list(number_of), np.frombuffer(ids, dtype=np.int32)


def count(ids: np.ndarray, size: int, order: int) -> list[Grams]:
    """The n-grams of orders 1 to `order` in `ids` (T,) over a vocabulary of `size` words.

    An n-gram holds at most one <s>, as its first word, and none ends in it; only the unigram <s>
    stands for its own (0 occurrences).
    """
    ends = np.flatnonzero(ids != BOS)
    zeros = np.zeros(size, dtype=np.int32)
    grams = [
        Grams(np.arange(size, dtype=np.int32), zeros, zeros, np.bincount(ids[ends], minlength=size))
    ]
    number = ids  # (T,): the index of the longest n-gram so far that ends at each position
    for n in range(2, order + 1):
        ends = ends[ids[ends - (n - 2)] != BOS]  # nothing stands before <s>
        longer, number = extend(ids, number, ends, n, size)
        grams.append(longer)
    return grams


def extend(
    ids: np.ndarray, number: np.ndarray, ends: np.ndarray, n: int, size: int
) -> tuple[Grams, np.ndarray]:
    """The n-grams that end at `ends`, and (T,) their indices, from those of the (n-1)-grams."""
    # suffix order is the order of (suffix, first word)
    key = number[ends].astype(np.int64) * size + ids[ends - (n - 1)]
    by_key = np.argsort(key)
    key, ends = key[by_key], ends[by_key]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    occurrences = np.diff(starts, append=len(key))
    longer = np.zeros_like(ids)
    longer[ends] = np.repeat(np.arange(len(starts), dtype=np.int32), occurrences)
    suffix, first = np.divmod(key[starts], size)
    return (
        Grams(
            first.astype(np.int32), suffix.astype(np.int32), number[ends[starts] - 1], occurrences
        ),
        longer,
    )
