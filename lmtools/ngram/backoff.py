"""Back-off n-gram models in sorted arrays: a trie of contexts, a level an order.

N-grams take 24 bytes here, those of the highest order 16, and are looked up together, a level at a
time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from lmtools.ngram.sentences import BOS

SHIFT = 32  # a key's lower bits are the word's, the others the context's
WORD = (1 << SHIFT) - 1
CHUNK = 1 << 20  # n-grams spelled at once
TINY = 1e-12  # mass that is rounding


@dataclass(eq=False)
class Level:
    """The n-grams of one order, sorted by `key`, (N,) int64: the index of the context among the
    n-grams one shorter, and the last word's id (`pack`). Of a unigram the key is the word's id.

    `prob` and `backoff`, (N,) float64: no logs. <s> has the probability 0.
    """

    key: np.ndarray
    prob: np.ndarray
    backoff: np.ndarray

    def __len__(self) -> int:
        return len(self.key)

    @property
    def context(self) -> np.ndarray:
        """Return (N,) indices of the contexts one order below; 0 for unigrams."""
        return self.key >> SHIFT

    @property
    def word(self) -> np.ndarray:
        """Return (N,) ids of the last words."""
        return self.key & WORD

    def find(self, context: np.ndarray, word: np.ndarray) -> np.ndarray:
        """Return the indices of n-grams with these contexts and last words; -1: not here."""
        key = pack(context, word)
        if not len(self):
            return np.full(len(key), -1)
        if (np.diff(key) < 0).any():
            by_key = np.argsort(key)  # neighbours are found in memory that is still near
            at = np.empty(len(key), dtype=np.int64)
            at[by_key] = np.searchsorted(self.key, key[by_key])
        else:
            at = np.searchsorted(self.key, key)
        at = np.minimum(at, len(self) - 1)
        return np.where((self.key[at] == key) & (context >= 0), at, -1)


def pack(context: np.ndarray, word: np.ndarray) -> np.ndarray:
    """Return the keys of n-grams."""
    return (context.astype(np.int64) << SHIFT) | word


def ones(size: int) -> np.ndarray:
    """Return the back-off weights of the highest order, in the memory of one."""
    return np.broadcast_to(1.0, size)


@dataclass(eq=False)
class BackoffModel:
    """Levels of the orders 1 to `order`; the unigrams are of every id, in its order."""

    levels: list[Level] = field(default_factory=list)

    @property
    def order(self) -> int:
        return len(self.levels)

    @property
    def counts(self) -> list[int]:
        """Return the number of n-grams of each order."""
        return list(map(len, self.levels))

    def spell(self, order: int, rows) -> np.ndarray:
        """Return (R, order) word ids of those `rows` (a slice, indices) of an order's n-grams."""
        columns = []
        for level in reversed(self.levels[:order]):
            key = level.key[rows]
            columns.append(key & WORD)
            rows = key >> SHIFT
        return np.stack(columns[::-1], axis=1)

    def pieces(self, order: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the n-grams of an order a piece at a time: rows, and their word ids (R, order)."""
        for start in range(0, len(self.levels[order - 1]), CHUNK):
            rows = slice(start, start + CHUNK)
            yield rows, self.spell(order, rows)

    def find(self, words: np.ndarray) -> np.ndarray:
        """Return (R,) indices, among n-grams of their length, of `words` (R, n); -1: not here."""
        at = words[:, 0]
        for level, word in zip(self.levels[1:], words.T[1:], strict=False):
            at = level.find(at, word)
        return at

    def query(self, words: np.ndarray) -> np.ndarray:
        """Return (R,) probabilities of the last of `words` (R, n) ids given those before them."""
        words = words[:, -self.order :]
        result, weight = np.zeros(len(words)), np.ones(len(words))
        rows = np.arange(len(words))
        for n in range(words.shape[1], 1, -1):
            part = words[rows, -n:]
            context = self.find(part[:, :-1])
            at = self.levels[n - 1].find(context, part[:, -1])
            hit = at >= 0
            result[rows[hit]] = weight[rows[hit]] * self.levels[n - 1].prob[at[hit]]
            rows, context = rows[~hit], context[~hit]
            known = context >= 0
            weight[rows[known]] *= self.levels[n - 2].backoff[context[known]]
        result[rows] = weight[rows] * self.levels[0].prob[words[rows, -1]]
        return result

    def lower(self, order: int) -> np.ndarray:
        """Return (N,) what the n-grams of an order, 2 or more, would have if they were not there,
        but for the back-off weight: the probability without the first word of the context.
        """
        probs = np.empty(len(self.levels[order - 1]))
        for rows, words in self.pieces(order):
            probs[rows] = self.query(words[:, 1:])
        return probs

    def masses(self, order: int, lower: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return, for each n-gram one shorter than `order`, (M,): how many follow it, what these
        leave of 1 as they are and as shorter ones (`lower`).
        """
        level, size = self.levels[order - 1], len(self.levels[order - 2])
        context = level.context
        return (
            np.bincount(context, minlength=size),
            1 - np.bincount(context, level.prob, size),
            1 - np.bincount(context, lower, size),
        )

    def set_backoffs(self) -> None:
        """Give every context the back-off weight with which its probabilities sum to 1."""
        for order in range(2, self.order + 1):
            followed, left, lower = self.masses(order, self.lower(order))
            self.levels[order - 2].backoff = backoff_weights(followed, left, lower)
        self.levels[-1].backoff = ones(len(self.levels[-1]))

    def add_ngrams(self, words: np.ndarray) -> np.ndarray | None:
        """Add those of `words` (R, n), and of their beginnings, that are not there, with the
        probability that back-off gives them and the weight 1, so that no probability changes.

        (N,) the new index of each former n-gram of n words; None where none has come.
        """
        places = None
        for n in range(2, words.shape[1] + 1):
            part = words[:, :n]
            new = np.unique(part[self.find(part) < 0], axis=0)
            places = self.insert(new) if len(new) else None
        return places

    def insert(self, words: np.ndarray) -> np.ndarray:
        """Add n-grams (R, n) that are not there while their contexts are; as `add_ngrams`."""
        n = words.shape[1]
        level, prob = self.levels[n - 1], self.query(words)
        key = np.concatenate((level.key, pack(self.find(words[:, :-1]), words[:, -1])))
        by_key = np.argsort(key)
        values = (level.prob, prob), (level.backoff, np.ones(len(words)))
        self.levels[n - 1] = Level(key[by_key], *(np.concatenate(v)[by_key] for v in values))
        places = np.empty(len(key), dtype=np.int64)
        places[by_key] = np.arange(len(key))
        places = places[: len(level)]
        if n < self.order:
            above = self.levels[n]
            above.key = pack(places[above.context], above.word)
        return places

    def add_endings(self) -> None:
        """Add the n-grams without the first word that are not there, as KenLM wants them."""
        for order in range(self.order, 2, -1):
            for _, words in self.pieces(order):
                self.add_ngrams(words[:, 1:])

    def drop_empty(self) -> None:
        """Leave out the highest orders that have no n-gram."""
        while self.order > 1 and not len(self.levels[-1]):
            self.levels.pop()


def backoff_weights(followed: np.ndarray, left: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """Return weights of contexts from `BackoffModel.masses`, 1 where nothing is to weigh."""
    weighed = (followed > 0) & (lower > TINY)
    return np.divide(np.maximum(left, 0), lower, out=np.ones(len(left)), where=weighed)


def history_probabilities(model: BackoffModel, eos: int) -> list[np.ndarray]:
    """Return the probability of each n-gram as a history, by the chain of its words, an array for
    each order but the highest.

    That of <s> is the probability of </s>, as SRILM has it: each sentence has one of both.
    """
    first = model.levels[0].prob.copy()
    first[BOS] = first[eos]
    histories = [first]
    for level in model.levels[1:-1]:
        histories.append(histories[-1][level.context] * level.prob)
    return histories
