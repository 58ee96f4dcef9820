"""Back-off n-gram models in sorted arrays: a trie of contexts, a level an order.

N-grams are looked up together, a level at a time. Pruning is by entropy (Stolcke 1998).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lmtools.ngram.sentences import BOS, EOS

SHIFT = 32  # a key's lower bits are the word's, the others the context's
WORD = (1 << SHIFT) - 1
CHUNK = 1 << 19  # n-grams at once
STEP = 1024  # sorted keys that are searched for together
TINY = 1e-12  # mass that is rounding
ABSENT, UNKNOWN = -1, -2  # suffixes that are no n-grams, and those not looked up so far


class NgramRows(NamedTuple):
    """N-grams of a level in a row, all that their contexts have: columns of Level, (R,) each."""

    key: np.ndarray
    prob: np.ndarray
    suffix: np.ndarray


@dataclass(eq=False)
class Level:
    """The n-grams of one order, sorted by `key`, (N,) int64: the index of the context among the
    n-grams one shorter, and the last word's id (`pack`). Of a unigram the key is the word's id.

    `prob` and `backoff`, (N,) float64: no logs. <s> has the probability 0. `suffix`, (N,) int32:
    the index, among the n-grams one shorter, of this one without its first word, ABSENT or UNKNOWN.
    """

    key: np.ndarray
    prob: np.ndarray
    backoff: np.ndarray
    suffix: np.ndarray | None = None

    def __post_init__(self):
        if self.suffix is None:
            self.suffix = np.broadcast_to(np.int32(UNKNOWN), len(self.key))

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

    def blocks(self) -> Iterator[NgramRows]:
        """Yield about CHUNK n-grams at once, all that a context has."""
        start = 0
        while start < len(self):
            last = self.key[min(start + CHUNK, len(self)) - 1] >> SHIFT
            stop = int(np.searchsorted(self.key, (last + 1) << SHIFT))
            yield NgramRows(*(each[start:stop] for each in (self.key, self.prob, self.suffix)))
            start = stop

    def look_up(self, context: np.ndarray, word: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which n-grams are here, bool (R,), and their probabilities, 0 of others."""
        at = self.find(context, word)
        prob = np.zeros(len(at))
        prob[at >= 0] = self.prob[at[at >= 0]]
        return at >= 0, prob

    def find(self, context: np.ndarray, word: np.ndarray) -> np.ndarray:
        """Return the indices of n-grams with these contexts and last words; -1: not here."""
        key = pack(context, word)
        if not len(self):
            return np.full(len(key), -1)
        if (np.diff(key) < 0).any():
            by_key = np.argsort(key)  # neighbours are found in memory that is still near
            at = np.empty(len(key), dtype=np.int64)
            at[by_key] = search_sorted(self.key, key[by_key])
        else:
            at = search_sorted(self.key, key)
        at = np.minimum(at, len(self) - 1)
        return np.where((self.key[at] == key) & (context >= 0), at, -1)


def search_sorted(table: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return np.searchsorted of sorted `keys`, STEP neighbours at a time: half the time."""
    at = np.empty(len(keys), dtype=np.int64)
    bounds = [*np.searchsorted(table, keys[::STEP]).tolist(), len(table)]
    for number, (low, high) in enumerate(pairwise(bounds)):
        rows = slice(number * STEP, (number + 1) * STEP)
        np.add(np.searchsorted(table[low : high + 1], keys[rows]), low, out=at[rows])
    return at


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
        return self.spell_keys(order, self.levels[order - 1].key[rows])

    def spell_keys(self, order: int, key: np.ndarray) -> np.ndarray:
        """Return (R, order) word ids of the n-grams of an order that have these keys."""
        columns = [key & WORD]
        for level in reversed(self.levels[: order - 1]):
            key = level.key[key >> SHIFT]
            columns.append(key & WORD)
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

    def query(self, words: np.ndarray, longest: int | None = None) -> np.ndarray:
        """Return (R,) probabilities of the last of `words` (R, n) ids given the others."""
        words = words[:, -self.order :]
        result, weight = np.zeros(len(words)), np.ones(len(words))
        rows = np.arange(len(words))
        for n in range(words.shape[1], 1, -1):
            part = words[rows, -n:]
            context = self.find(part[:, :-1])
            if longest is None or n <= longest:
                hit, prob = self.levels[n - 1].look_up(context, part[:, -1])
                result[rows[hit]] = weight[rows[hit]] * prob[hit]
            else:
                hit = np.zeros(len(rows), dtype=bool)
            rows, context = rows[~hit], context[~hit]
            known = context >= 0
            weight[rows[known]] *= self.levels[n - 2].backoff[context[known]]
        result[rows] = weight[rows] * self.levels[0].prob[words[rows, -1]]
        return result

    def shorten(self, order: int, key: np.ndarray, suffix: np.ndarray) -> np.ndarray:
        """Return (R,) suffixes of n-grams with these keys, UNKNOWN ones looked up."""
        if order == 2:
            return key & WORD
        rows = np.flatnonzero(suffix == UNKNOWN)
        if not len(rows):
            return suffix
        contexts, word = self.levels[order - 2], key[rows] & WORD
        at = key[rows] >> SHIFT
        at = contexts.key[at] & WORD if order == 3 else contexts.suffix[at]
        found = suffix.astype(np.int32)
        found[rows] = contexts.find(at, word)
        return found

    def lower(self, order: int, key: np.ndarray, shorter: np.ndarray) -> np.ndarray:
        """Return (R,) what n-grams of these keys would have by back-off, but for its weight.
        `shorter` is what `shorten` gives.
        """
        probs = self.levels[order - 2].prob[shorter]
        if len(rows := np.flatnonzero(shorter < 0)):
            probs[rows] = self.query(self.spell_keys(order, key[rows])[:, 1:], order - 2)
        return probs

    def complete_suffixes(self) -> None:
        for n in range(3, self.order):
            level = self.levels[n - 1]
            if any((rows.suffix == UNKNOWN).any() for rows in level.blocks()):
                parts = [self.shorten(n, rows.key, rows.suffix) for rows in level.blocks()]
                level.suffix = np.concatenate(parts)

    def set_backoffs(self) -> None:
        """Give every context the back-off weight with which its probabilities sum to 1."""
        for order in range(2, self.order + 1):
            contexts, level = self.levels[order - 2 : order]
            contexts.backoff, parts, known = np.ones(len(contexts)), [], True
            for key, prob, suffix in level.blocks():
                shorter = self.shorten(order, key, suffix)
                first, *masses = sum_masses(key, prob, self.lower(order, key, shorter))
                weights = backoff_weights(*masses)
                contexts.backoff[first : first + len(weights)] = weights
                known = known and shorter is suffix
                parts.append(shorter if shorter is suffix else shorter.astype(np.int32))
            if not known:
                level.suffix = np.concatenate(parts)

    def add_ngrams(self, words: np.ndarray) -> np.ndarray | None:
        """Add those of `words` (R, n), and their beginnings, that are not there, as back-off has
        them: no probability changes. Return new indices (N,), or None.
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
            self.levels[n] = Level(
                pack(places[above.context], above.word), above.prob, above.backoff
            )
        return places

    def add_endings(self) -> None:
        for order in range(self.order, 2, -1):
            for _, words in self.pieces(order):
                self.add_ngrams(words[:, 1:])

    def drop_empty(self) -> None:
        while self.order > 1 and not len(self.levels[-1]):
            self.levels.pop()


def sum_masses(
    key: np.ndarray, prob: np.ndarray, lower: np.ndarray
) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Return the first context of n-grams in a row, and for each from it to their last one, (C,):
    how many follow it, what these leave of 1 as they are and as shorter ones (`lower`).
    """
    first = int(key[0] >> SHIFT)
    context = (key >> SHIFT) - first
    followed = np.bincount(context)
    return first, followed, 1 - np.bincount(context, prob), 1 - np.bincount(context, lower)


def backoff_weights(followed: np.ndarray, left: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """Return weights of contexts from `sum_masses`, 1 where nothing is to weigh."""
    weighed = (followed > 0) & (lower > TINY)
    return np.divide(np.maximum(left, 0), lower, out=np.ones(len(left)), where=weighed)


def history_probabilities(model: BackoffModel, eos: int) -> list[np.ndarray]:
    """Return the probability of each n-gram as a history, by the chain of its words, an array for
    each order but the two highest, and at least one.

    That of <s> is the probability of </s>, as SRILM has it: each sentence has one of both.
    """
    first = model.levels[0].prob.copy()
    first[BOS] = first[eos]
    histories = [first]
    for level in model.levels[1:-2]:
        histories.append(histories[-1][level.context] * level.prob)
    return histories


def complete_unigrams(level: Level, size: int) -> Level:
    """Return the unigrams of all words, of `size` in all, of which the level lists some."""
    whole = Level(np.arange(size), np.zeros(size), np.ones(size))
    whole.prob[level.key], whole.backoff[level.key] = level.prob, level.backoff
    whole.prob[BOS] = 0
    return whole


def fill_unigrams(model: BackoffModel, size: int) -> None:
    """Give words a model lacks, of `size` in all, the probability 0, as SRILM does."""
    level, more = model.levels[0], size - len(model.levels[0])
    prob, backoff = np.append(level.prob, np.zeros(more)), np.append(level.backoff, np.ones(more))
    model.levels[0] = Level(np.arange(size), prob, backoff)


def prune(model: BackoffModel, threshold: float) -> BackoffModel:
    """Return `model`, which is used up, without the n-grams of two words and more that change its
    perplexity by less than the factor 1 + `threshold` each, judged alone as in SRILM; contexts of
    those that stay are kept, and back-off weights are new.
    """
    result = renumber(model.levels[0], select_ngrams(model, threshold))
    result.drop_empty()
    result.set_backoffs()
    return result


def select_ngrams(model: BackoffModel, threshold: float) -> list[tuple[Level, np.ndarray | None]]:
    """Return what stays of each order from 2, and which n-grams, bool (N,), None of the highest."""
    histories = history_probabilities(model, EOS)
    model.complete_suffixes()
    needed, survivors = None, []
    for n in range(model.order, 1, -1):
        level = model.levels[n - 1]
        stays = [
            ~(relative_change(model, n, rows, histories) < threshold) for rows in level.blocks()
        ]
        stays = np.concatenate([np.empty(0, dtype=bool), *stays])
        if needed is not None:
            stays |= needed
        model.levels.pop()
        key, prob, suffix = (each[stays] for each in (level.key, level.prob, level.suffix))
        level = Level(key, prob, ones(len(key)), suffix)
        survivors.append((level, stays if survivors else None))
        needed = np.zeros(len(model.levels[-1]), dtype=bool)
        needed[level.context] = True
    return survivors[::-1]


def relative_change(
    model: BackoffModel, order: int, rows: NgramRows, histories: Sequence[np.ndarray]
) -> np.ndarray:
    """Return (R,) by what share perplexity rises without each of the n-grams of an order alone that
    are `rows` of Level.blocks; `histories` are those of the orders that are two lower and more.

    With p of the n-gram and q of the shorter one, the context's back-off weight is b = s / t, s
    being the mass that backs off; without the n-gram it is c = (s + p) / (t + q). The relative
    entropy is P(history) [p (log p - log(c q)) + s (log b - log c)].
    """
    key, prob, suffix = rows
    q = model.lower(order, key, model.shorten(order, key, suffix))
    first, followed, left, shorter = sum_masses(key, prob, q)
    contexts = slice(first, first + len(followed))
    if order == 2:
        history = histories[0][contexts]
    else:
        level = model.levels[order - 2]
        history = histories[order - 3][level.key[contexts] >> SHIFT] * level.prob[contexts]
    before = backoff_weights(followed, left, shorter)
    context = (key >> SHIFT) - first
    mass = np.maximum(left, 0)[context]
    with np.errstate(divide="ignore", invalid="ignore"):
        after = (mass + prob) / (np.maximum(shorter, 0)[context] + q)
        gain = prob * (np.log(prob) - np.log(after * q))
        backed_off = mass * (np.log(before)[context] - np.log(after))
    gain[prob == 0] = 0
    backed_off[mass <= TINY] = 0
    return np.expm1(history[context] * (gain + backed_off))


def renumber(unigrams: Level, survivors: Sequence[tuple[Level, np.ndarray | None]]) -> BackoffModel:
    """Return the model, without back-off weights, of unigrams and what `select_ngrams` returned."""
    result = BackoffModel([Level(unigrams.key, unigrams.prob, ones(len(unigrams)))])
    place = np.arange(len(unigrams), dtype=np.int32)
    for level, stays in survivors:
        shorter = level.suffix.copy()
        shorter[shorter >= 0] = place[shorter[shorter >= 0]]
        key = pack(place[level.context], level.word)
        result.levels.append(Level(key, level.prob, level.backoff, shorter))
        if stays is not None:  # where the next order's contexts and suffixes are
            place = np.cumsum(stays, dtype=np.int32)
            place -= 1
            place[~stays] = ABSENT
    return result
