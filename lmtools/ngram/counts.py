"""Distinct n-grams of a text with their counts, by sorting packed integers, a range of the n-grams
at a time: what a range needs is in memory, the rest on disk.

Arrays lie in unnamed files, so that estimation takes disk and not memory; records are dealt into
ranges of their keys and sorted one range at a time.
"""

import contextlib
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count as numbers
from typing import NamedTuple

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.log import track
from lmtools.ngram.sentences import BOS, EOS, SYMBOLS

BLOCK = 1 << 18  # rows that are read at once
FILES = 256  # ranges: a byte numbers them
STRIDE = 64  # of so many keys one is looked at to choose ranges


class DiskArray:
    """A growing array of `dtype` in a file without name, which vanishes with the process."""

    def __init__(self, folder, dtype):
        self.file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (open as long as the array)
        self.dtype = np.dtype(dtype)
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def append(self, values: np.ndarray) -> None:
        values = np.ascontiguousarray(values, dtype=self.dtype.base)
        self.file.seek(self.size * self.dtype.itemsize)
        self.file.write(values.reshape(-1).view(np.uint8))
        self.size += len(values)

    def read(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Read those rows, all of them where nothing is said."""
        stop = self.size if stop is None else min(stop, self.size)
        rows = np.empty(max(stop - start, 0), dtype=self.dtype)
        self.file.seek(start * self.dtype.itemsize)
        self.file.readinto(rows.reshape(-1).view(np.uint8))
        return rows

    def blocks(self) -> Iterator[np.ndarray]:
        for start in range(0, self.size, BLOCK):
            yield self.read(start, start + BLOCK)

    def close(self) -> None:
        """Give the disk back; what could not be written is not wanted any more."""
        with contextlib.suppress(OSError):
            self.file.close()

    def __del__(self):
        if hasattr(self, "file"):  # so that it does not wait for a warning of the collector
            self.close()


class Buckets:
    """Records of `dtype` by ranges of keys that fit memory, and what is made of them in order."""

    def __init__(self, folder, bounds: np.ndarray, dtype):
        self.bounds = bounds
        self.parts = [DiskArray(folder, dtype) for _ in range(len(bounds) + 1)]
        self.where = DiskArray(folder, np.uint8)

    def deal(self, keys: np.ndarray, records: np.ndarray) -> None:
        where = np.searchsorted(self.bounds, keys, side="right").astype(np.uint8)
        self.where.append(where)
        for number, rows in split(where, len(self.parts)):
            self.parts[number].append(records[rows])

    def collect(self, results: list[DiskArray]) -> Iterator[np.ndarray]:
        """Yield rows made of each range, in the order of the records that were dealt, in blocks."""
        taken = [0] * len(results)
        for where in self.where.blocks():
            rows = np.empty(len(where), dtype=results[0].dtype)
            for number, chosen in split(where, len(results)):
                rows[chosen] = results[number].read(taken[number], taken[number] + len(chosen))
                taken[number] += len(chosen)
            yield rows


def split(where: np.ndarray, parts: int) -> Iterator[tuple[int, np.ndarray]]:
    if parts == 1:
        yield 0, np.arange(len(where))
        return
    by_part = np.argsort(where, kind="stable")
    ends = np.cumsum(np.bincount(where, minlength=parts)).tolist()
    for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        if end > start:
            yield number, by_part[start:end]


def choose_bounds(keys: Iterable[np.ndarray], total: int, room: int) -> np.ndarray:
    """Return bounds between at most FILES ranges of `keys`, of about `room` of the `total` each."""
    if total <= room:
        return np.empty(0, dtype=np.int64)
    # copies: a view would hold its block
    sample = np.sort(np.concatenate([block[::STRIDE].copy() for block in keys]))
    # ranges are uneven: a few more than needed
    number = min(FILES, -(-total * 5 // (max(room, 1) * 4)))
    return np.unique(sample[np.arange(1, number) * len(sample) // number])


KEY = 63  # bits
MOST = np.iinfo(np.int32).max  # n-grams of one order
RECORD = 112  # bytes that sorting takes for each position of a range, besides 4 a word


class Grams:
    """The distinct n-grams of one order in suffix order: sorted from the last word backwards.

    `first`: the first word's id; `suffix`: the index, among the n-grams one shorter, of this one
    without its first word; `count`: the adjusted count, occurrences in the highest order and after
    <s>, elsewhere distinct words to the left; `kept`: whether it occurs often enough (`least`
    times); `prob`, `backoff`: what the estimator makes of it, no logs; `context`, which it finds:
    the index of this one without its last word. A unigram's index is its word's id, and its suffix
    and context are 0. `size`: how many are kept.
    """

    def __init__(self, folder, least: int = 1):
        self.least = least
        self.first, self.suffix, self.context = (DiskArray(folder, np.int32) for _ in range(3))
        self.count = DiskArray(folder, np.int64)
        self.kept = DiskArray(folder, bool)
        self.prob, self.backoff = (DiskArray(folder, np.float64) for _ in range(2))
        self.size = 0
        self.tally = np.zeros(5, dtype=np.int64)
        self.last = ()

    def __len__(self) -> int:
        return len(self.first)

    def append(self, first, suffix, occurrences, count) -> None:
        if not len(first):
            return
        if len(self) + len(first) > MOST:
            raise UserError(
                f"--order: more than {MOST:,} n-grams of one order; give less text or a lower order"
            )
        kept = occurrences >= self.least if self.least > 1 else np.full(len(first), True)
        columns = (self.first, first), (self.suffix, suffix), (self.count, count), (self.kept, kept)
        for column, values in columns:
            column.append(values)
        self.size += int(np.count_nonzero(kept))
        self.tally += np.bincount(np.minimum(count, 5), minlength=6)[:5]
        self.last = int(first[-1]), int(count[-1]), int(occurrences[-1])


@dataclass(eq=False)
class IndexedText:
    """A text as ids on disk: `ids` (T,) of all sentences, BOS to EOS (None: only counts are known);
    the vocabulary by appearance, SYMBOLS first; `occurrences` (V,), of <s> 0.
    """

    ids: DiskArray | None
    vocabulary: list[str] = field(default_factory=list)
    occurrences: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def index(sentences: Iterable[list[str]], more: Iterable[str] = (), folder=None) -> IndexedText:
    """Return the text of `sentences`; the words of `more` that it lacks come last."""
    text, ids = IndexedText(DiskArray(folder, np.int32)), array("i")
    number_of = defaultdict(numbers().__next__)
    look_up = number_of.__getitem__
    for symbol in SYMBOLS:
        look_up(symbol)

    def store():
        block = np.frombuffer(ids, dtype=np.int32)
        occurrences = np.bincount(block, minlength=len(number_of))
        occurrences[: len(text.occurrences)] += text.occurrences
        text.occurrences = occurrences
        text.ids.append(block)

    for words in sentences:
        ids.append(BOS)
        ids.extend(map(look_up, words))
        ids.append(EOS)
        if len(ids) >= BLOCK:
            store()
            ids = array("i")
    for word in more:
        look_up(word)
    store()
    text.vocabulary = list(number_of)
    text.occurrences[BOS] = 0
    return text


def count(
    text: IndexedText, order: int, memory: int, folder=None, min_counts: Sequence[int] = ()
) -> list[Grams]:
    """Return the n-grams of orders 1 to `order`, sorted in about `memory` bytes; those below
    `min_counts` (orders,) are marked. <s> occurs as a first word alone.
    """
    size = len(text.vocabulary)
    grams = [Grams(folder, least) for least in min_counts or [1] * order]
    left = np.zeros(size, dtype=np.int64)  # distinct words before each word
    if order > 1:
        parts = deal_windows(text, order, memory // (RECORD + 4 * order), folder)
        for part in track(parts, "sort n-grams", sum(map(len, parts)), "n-gram", size=len):
            windows = part.read()
            part.close()
            if len(windows):
                left += append_sorted(grams, windows, size)
    words = np.arange(size)
    counts = left if order > 1 else text.occurrences
    grams[0].append(words, np.zeros_like(words), text.occurrences, counts)
    return grams


def deal_windows(text: IndexedText, order: int, room: int, folder) -> list[DiskArray]:
    """Return the n-grams of `order` at all positions of the text, each from its last word
    backwards, dealt by their last two words; before a sentence stands <s> again and again.
    """

    def windows() -> Iterator[np.ndarray]:
        before = np.full(order - 1, BOS, dtype=np.int32)
        for block in text.ids.blocks():
            block = np.concatenate((before, block))
            before = block[-order + 1 :]
            columns = [block[order - 1 :]]
            for back in range(1, order):
                word = block[order - 1 - back : -back]
                columns.append(np.where(columns[-1] == BOS, BOS, word) if back > 1 else word)
            yield np.stack(columns, axis=1)[columns[0] != BOS]

    def keys(rows: np.ndarray) -> np.ndarray:
        return rows[:, 0].astype(np.int64) << 32 | rows[:, 1]

    bounds = choose_bounds(map(keys, windows()), len(text.ids), room)
    buckets = Buckets(folder, bounds, (np.int32, (order,)))
    for rows in windows():
        buckets.deal(keys(rows), rows)
    buckets.where.close()
    text.ids.close()
    return buckets.parts


def append_sorted(grams: Sequence[Grams], windows: np.ndarray, size: int) -> np.ndarray:
    """Add the n-grams of `windows` (R, order), after all of `grams`; (size,) bigrams a word."""
    levels = build_trie(windows, (size - 1).bit_length())
    index, rows = levels[0].first, []  # what the level's n-grams are among those of their order
    for gram, shorter, level in zip(grams[1:], levels, levels[1:], strict=False):
        real = shorter.first[level.parent] != BOS  # <s> stands at the beginning alone
        rows.append((level.first[real], index[level.parent[real]], level.occurrences[real]))
        index = np.cumsum(real) + (len(gram) - 1)
    return append_rows(grams, rows, size)


def append_rows(grams: Sequence[Grams], rows: Sequence[tuple], size: int) -> np.ndarray:
    """Add `rows` of orders from 2: first words, suffixes, occurrences (N,); see `append_sorted`."""
    starts = [len(gram) for gram in grams[1:]]
    for n, (first, suffix, occurrences) in enumerate(rows):
        counts = occurrences
        if n + 1 < len(rows):
            left = np.bincount(rows[n + 1][1] - starts[n], minlength=len(first))
            counts = np.where(first == BOS, occurrences, left)
        grams[n + 1].append(first, suffix, occurrences, counts)
    return np.bincount(rows[0][1], minlength=size) if rows else np.zeros(size, dtype=np.int64)


class TrieLevel(NamedTuple):
    """The n-grams of an order, by suffix, (N,) each: first word, index of the rest, occurrences."""

    first: np.ndarray
    parent: np.ndarray
    occurrences: np.ndarray


def build_trie(windows: np.ndarray, bits: int) -> list[TrieLevel]:
    """Return the n-grams of every order in `windows` (R, order), the last word first. Words are
    packed into one integer, as many as fit, and sorted; the numbers of what was found begin the
    next integer.
    """
    levels, distinct = [], 1
    order = windows.shape[1]
    rank = np.zeros(len(windows), dtype=np.int64)
    while len(levels) < order:
        fit = max(1, (KEY - (distinct - 1).bit_length()) // bits)
        upto = min(order, len(levels) + fit)
        for word in range(len(levels), upto):
            rank <<= bits
            rank |= windows[:, word]
        if upto == order:
            rank.sort()
            key = rank
        else:
            by_key = np.argsort(rank)
            key = rank[by_key]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        times = np.diff(starts, append=len(key))
        key = key[starts]
        if upto < order:
            rank[by_key] = np.repeat(np.arange(len(starts)), times)
            del by_key
        levels += split_levels(key, times, upto - len(levels), bits)
        distinct = len(key)
    return levels


def split_levels(key: np.ndarray, times: np.ndarray, words: int, bits: int) -> list[TrieLevel]:
    """Return the levels of so many `words` of distinct packed n-grams, which occur `times`."""
    levels: list[TrieLevel] = []
    parent_of = None
    for word in range(words - 1, -1, -1):
        prefix = key >> bits * word
        new = np.diff(prefix, prepend=-1) != 0
        heads = np.flatnonzero(new)
        prefix = prefix[heads]
        parent = (prefix >> bits if parent_of is None else parent_of[heads]).astype(np.int32)
        first = (prefix & ((1 << bits) - 1)).astype(np.int32)
        levels.append(TrieLevel(first, parent, np.add.reduceat(times, heads)))
        parent_of = np.cumsum(new) - 1
    return levels
