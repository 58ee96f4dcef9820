"""Distinct n-grams of a text with their counts, by sorting packed integers, a range of the n-grams
at a time: what a range needs is in memory, the rest on disk; or from files of counts, as SRILM's
`ngram-count -write` leaves them.
"""

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count as numbers
from typing import NamedTuple

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.base.log import track
from lmtools.ngram.disk import BLOCK, Buckets, DiskArray, choose_bounds
from lmtools.ngram.sentences import BOS, EOS, RESERVED, SYMBOLS, UNKNOWN, split_words

KEY = 63  # bits
MOST = np.iinfo(np.int32).max  # n-grams of one order
RECORD = 112  # bytes that sorting takes for each position of a range, besides 4 a word
BEGIN, END = SYMBOLS[BOS], SYMBOLS[EOS]
NUMBER = re.compile("[0-9]+")  # str.isdecimal takes the digits of any script
LARGEST = 10**15  # of a number, and of a sum of them: exact in the arithmetic of smoothing


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
    """Return the n-grams of orders 1 to `order`, sorted in about `memory` bytes; those that occur
    less often than `min_counts` (orders,) are marked.

    An n-gram holds at most one <s>, as its first word, and none ends in it; only the unigram <s>
    stands for its own (0 occurrences).
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
    append_words(grams, text.occurrences, left)
    return grams


def append_words(grams: Sequence[Grams], occurrences: np.ndarray, left: np.ndarray) -> None:
    """Add all unigrams, of which `left` (V,) distinct words stand before each."""
    words = np.arange(len(occurrences))
    counts = left if len(grams) > 1 else occurrences
    grams[0].append(words, np.zeros_like(words), occurrences, counts)


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
    """Add the n-grams of two words and more in `windows` (R, order), which come after all that
    `grams` have; (size,) how many bigrams among them end in each word.
    """
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
    """Return the n-grams of every order in `windows` (R, order) of words of so many bits, the last
    first.

    As many words as fit are packed into one integer and sorted together; then the n-grams found so
    far are numbered, and their numbers are the beginning of the next integer.
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


class CountFiles:
    """The n-grams of files of counts; reading tallies `sentences`, `tokens`, `reserved` as
    TokenisedText does, and whether some words hold white space that only KenLM leaves in words
    (`foreign`). `rename` maps a word to the model's name for it, as UNKNOWN.
    """

    def __init__(self, paths: Sequence, rename: Callable[[str], str] = str):
        self.paths, self.rename = paths, rename
        self.sentences = self.tokens = self.reserved = 0
        self.foreign = False

    def tally(
        self, order: int, closed: bool, folder=None, min_counts: Sequence[int] = ()
    ) -> tuple[IndexedText, list[Grams]]:
        """Return the vocabulary and the n-grams of orders 1 to `order`, as lmtools.ngram.counts has
        them of a text; all of it in memory.

        UserError where an n-gram's beginning or end has no count: probabilities are those of all
        orders' counts, without cut-offs.
        """
        counts: list[dict[tuple[str, ...], int]] = [{} for _ in range(order)]
        self.reserved = 0
        for words, number in self.rows(order):
            ngrams = counts[len(words) - 1]
            ngrams[words] = ngrams.get(words, 0) + number
        self.check_sums(counts)
        counts[0].pop((BEGIN,), None)
        self.sentences = counts[0].get((END,), 0)
        self.tokens = sum(counts[0].values()) - self.sentences
        missing = [n for n, ngrams in enumerate(counts, 1) if not ngrams]
        if missing or not self.sentences:
            lacks = f"n-grams of {missing[0]} words" if missing else f"{END}"
            raise UserError(
                f"{self.paths[0]}: no counts of {lacks}; give all orders up to --order, with"
                f" {BEGIN} and {END}, as ngram-count -write has them"
            )
        self.foreign = any(len(word.split()) > 1 for (word,) in counts[0])
        words = dict.fromkeys((*SYMBOLS, *(word for (word,) in counts[0])))
        if closed:
            words[UNKNOWN] = None
        ids = {word: i for i, word in enumerate(words)}
        occurrences = np.zeros(len(ids), dtype=np.int64)
        for (word,), number in counts[0].items():
            occurrences[ids[word]] = number
        grams = [Grams(folder, least) for least in min_counts or [1] * order]
        rows = self.gather(counts[1:], ids)
        append_words(grams, occurrences, append_rows(grams, rows, len(ids)))
        return IndexedText(None, list(words), occurrences), grams

    def rows(self, order: int) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yield each line's words and count, of n-grams up to `order`."""
        for path in self.paths:
            for line, text in read_lines(path):
                *words, number = split_words(text) or ("",)
                if not words and not number:
                    continue
                if not words or not NUMBER.fullmatch(number):
                    raise UserError(
                        f"{path}:{line}: {text!r:.60} is no n-gram with a whole number after it;"
                        " write `of the 12`"
                    )
                if len(words) > order or number.strip("0") == "":
                    continue
                if len(number.lstrip("0")) >= len(str(LARGEST)):
                    raise UserError(
                        f"{path}:{line}: {number:.20} ...: counts go to {LARGEST:,}; check that it"
                        " is the right file, or scale its counts down"
                    )
                if BEGIN in words[1:] or END in words[:-1]:
                    raise UserError(
                        f"{path}:{line}: {text!r:.60} goes on across the end of a sentence; count"
                        " sentence by sentence"
                    )
                named = [each if each in (BEGIN, END) else self.rename(each) for each in words]
                if not RESERVED.isdisjoint(
                    named[named[0] == BEGIN : len(named) - (named[-1] == END)]
                ):
                    self.reserved += int(number) if len(words) == 1 else 0
                    continue
                yield tuple(named), int(number)

    def check_sums(self, counts: Sequence[dict]) -> None:
        for n, ngrams in enumerate(counts, 1):
            if sum(ngrams.values()) > LARGEST:
                raise UserError(
                    f"{self.paths[0]}: the counts of {n} words go beyond {LARGEST:,} together;"
                    " scale them down"
                )

    def gather(self, counts: Sequence[dict], ids: dict[str, int]) -> list[tuple]:
        """Return the n-grams of the orders from 2 in suffix order: rows for `append_rows`."""
        size, result, keys = len(ids), [], []
        for ngrams in counts:
            rows = np.array(
                [[self.look_up(ids, word, words) for word in words] for words in ngrams]
            )
            suffix = self.find(rows[:, 1:], keys, size, ngrams)
            self.find(rows[:, :-1], keys, size, ngrams)
            key = suffix * size + rows[:, 0]
            by_key = np.argsort(key)
            keys.append(key[by_key])
            each = np.fromiter(ngrams.values(), dtype=np.int64, count=len(ngrams))
            result.append((rows[by_key, 0], suffix[by_key], each[by_key]))
        return result

    def look_up(self, ids: dict[str, int], word: str, words: Sequence[str]) -> int:
        """Return the word's number; UserError where it has no count of its own."""
        if word not in ids:
            raise self.lacking(word, words)
        return ids[word]

    def find(self, rows: np.ndarray, keys: Sequence[np.ndarray], size: int, ngrams) -> np.ndarray:
        """Return (N,) the index of each of `rows` (N, n) among the n-grams of n words."""
        place = rows[:, -1].astype(np.int64)
        for n, key in zip(range(2, rows.shape[1] + 1), keys, strict=False):
            wanted = place * size + rows[:, -n]
            place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
            if len(absent := np.flatnonzero(key[place] != wanted)):
                raise self.lacking("its beginning or its end", list(ngrams)[absent[0]])
        return place

    def lacking(self, what: str, words: Sequence[str]) -> UserError:
        return UserError(
            f"{self.paths[0]}: `{' '.join(words)}` is counted, {what} is not; give counts of all"
            " orders, without cut-offs (--min-count leaves out what is rare)"
        )
