"""Vocabularies that are lists sorted by frequency: words, or characters with a word mark; counted
exactly, in bounded memory, by several processes.
"""

import heapq
import itertools
import operator
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import BinaryIO

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.workers import map_ordered
from lmtools.text import MARK, Normaliser
from lmtools.text.blocks import SIZE, TextBlock, TextPart, cut_texts
from lmtools.text.subword.base import SPECIALS, UNK, LeftOut, Subword, room

ROOM = 200_000  # distinct items held in memory, some 150 bytes each, before they go to disk
REMEMBERED = 50_000  # words of raw text whose normalised form, or whose ids, are kept at hand
PART = 4 * SIZE  # bytes of a text that are counted together
WIDEST = 1000  # characters: a longer "word" is noise and not kept


class TokenCounts:
    """A sum of counts: at most `room` items in memory, the rest sorted in unnamed files. Iterating
    gives (item, occurrences); no item holds a tab or line feed.
    """

    def __init__(self, room: int = ROOM):
        self.room, self.total = room, 0
        self.counts: Counter[str] = Counter()
        self.runs: list[BinaryIO] = []

    def add(self, counts: Mapping[str, int]) -> None:
        self.counts.update(counts)
        self.total += sum(counts.values())
        if len(self.counts) > self.room:
            self.spill()

    def spill(self) -> None:
        """Move the counts in memory to a file, in the order of the items."""
        run = tempfile.TemporaryFile()  # noqa: SIM115 (it is open as long as the tally)
        run.writelines(f"{item}\t{count}\n".encode() for item, count in sorted(self.counts.items()))
        self.runs.append(run)
        self.counts.clear()

    def __iter__(self) -> Iterator[tuple[str, int]]:
        if not self.runs:
            yield from self.counts.items()
            return
        merged = heapq.merge(*map(read_run, self.runs), sorted(self.counts.items()))
        for item, same in itertools.groupby(merged, operator.itemgetter(0)):
            yield item, sum(count for _, count in same)


def read_run(run: BinaryIO) -> Iterator[tuple[str, int]]:
    """Read the pairs in a file that `TokenCounts.spill` wrote."""
    run.seek(0)
    for line in run:
        item, _, count = line.decode().partition("\t")
        yield item, int(count)


def sum_counts(parts: Iterable[Mapping[str, int]], room: int = ROOM) -> TokenCounts:
    """Return the sum of all counts in `parts`."""
    whole = TokenCounts(room)
    for part in parts:
        whole.add(part)
    return whole


class Remembering(dict):
    """Cache of `find` for each word of raw text, for normalisers that see one word at a time.

    Normalising a text's words one by one gives the words of the normalised text, and most of them
    have been seen before.
    """

    def __missing__(self, token: str):
        value = self.find(token)
        if len(self) < REMEMBERED and len(token) <= WIDEST:
            self[token] = value
        return value


class Normalised(Remembering):
    """The normalised words, mostly one, that a word of raw text becomes."""

    def __init__(self, normaliser: Normaliser):
        self.whole = normaliser

    def find(self, token: str) -> tuple[str, ...]:
        return tuple(self.whole(token).split())

    def __reduce__(self):
        return type(self), (self.whole,)


class Numbered(Remembering):
    """The ids, mostly one, that a word of raw text becomes."""

    def __init__(self, normaliser: Normaliser, ids: Mapping[str, int]):
        self.whole, self.ids = normaliser, ids

    def find(self, token: str) -> tuple[int, ...]:
        return tuple(self.ids.get(word, UNK) for word in self.whole(token).split())


class Listed(Subword):
    """A vocabulary in `vocab.txt`: `item<TAB>count`, most frequent first; all else is <unk>."""

    file = "vocab.txt"
    always: tuple[str, ...] = ()  # items that lead the list whether they occur or not

    def __init__(self, content: bytes, normaliser: Normaliser):
        super().__init__(content, normaliser)
        self.ids = dict(
            zip(self.vocabulary[len(SPECIALS) :], range(len(SPECIALS), self.size), strict=True)
        )

    @classmethod
    def learn(
        cls, lines: Iterable[str], vocab_size: int | None, min_count=1, sentences=1_000_000
    ) -> tuple[bytes, LeftOut]:
        counts = sum_counts(Counter(cls.items(line)) for line in lines)
        return cls.select(counts, vocab_size, min_count)

    @classmethod
    def learn_files(
        cls,
        paths: Sequence,
        normaliser: Normaliser,
        vocab_size: int | None = None,
        min_count: int = 1,
        nj: int = 1,
    ) -> "Listed":
        """Return the vocabulary of texts, counted by `nj` processes in bounded memory."""
        room(vocab_size, 0)
        work = partial(cls.count, normaliser=Normalised(normaliser))
        parts = map_ordered(work, cut_texts(paths, PART), nj)
        counts = sum_counts(parts)
        content, left_out = cls.select(counts, vocab_size, min_count)
        subword = cls(content, normaliser)
        subword.left_out = left_out
        return subword

    @classmethod
    def select(
        cls, counts: TokenCounts, vocab_size: int | None, min_count: int
    ) -> tuple[bytes, LeftOut]:
        """Return the list of these counts, and what it leaves out; `min_count` bounds memory."""
        kept, distinct = {}, 0
        for item, count in counts:
            distinct += 1
            if count >= min_count or item in cls.always:
                kept[item] = count
        chosen = cls.choose(kept, vocab_size, min_count)
        inside = [kept[item] for item in chosen if item in kept]
        return cls.write_list(chosen, kept), LeftOut.of(
            distinct - len(inside), counts.total - sum(inside), counts.total
        )

    @classmethod
    def listing(
        cls, counts: Mapping[str, int], vocab_size: int | None = None, min_count: int = 1
    ) -> bytes:
        return cls.write_list(cls.choose(counts, vocab_size, min_count), counts)

    @classmethod
    def choose(cls, counts: Mapping[str, int], vocab_size: int | None, min_count: int) -> list[str]:
        others = {*SPECIALS, *cls.always}
        frequent = sorted(x for x in counts if counts[x] >= min_count and x not in others)
        frequent.sort(key=counts.__getitem__, reverse=True)  # equal ones stay in their order
        chosen = [*cls.always, *frequent]
        if len(chosen) == len(cls.always):
            raise UserError(
                f"the text holds nothing that occurs {min_count} times; give one sentence a line,"
                " or a lower --min-count"
            )
        return chosen[: room(vocab_size, len(chosen))]

    @staticmethod
    def write_list(items: Iterable[str], counts: Mapping[str, int]) -> bytes:
        return "".join(f"{item}\t{counts.get(item, 0)}\n" for item in items).encode()

    @staticmethod
    def items(text: str) -> Iterable[str]:
        raise NotImplementedError

    @classmethod
    def count(cls, part: TextPart | TextBlock, normaliser: "Normalised") -> Counter[str]:
        counts: Counter[str] = Counter()
        for block in part.blocks():
            counts.update(cls.occurrences(block, normaliser))
        return counts

    @classmethod
    def occurrences(cls, block: TextBlock, normaliser: "Normalised") -> Counter[str]:
        raise NotImplementedError

    def read(self, content: bytes) -> tuple[str, ...]:
        # one list: of 800,000 words, a list each takes seconds
        *fields, rest = content.decode().replace("\n", "\t").split("\t")
        if rest or len(fields) != 2 * content.count(b"\n"):
            raise ValueError("its lines are not all an item and a count")
        self.counts = np.array(list(map(int, fields[1::2])), dtype=np.int64)
        return (*SPECIALS, *fields[::2])

    def segment(self, texts: Sequence[str]) -> list[list[int]]:
        ids = self.ids
        return [[ids.get(item, UNK) for item in self.items(text)] for text in texts]

    def surfaces(self, text: str) -> list[str]:
        return list(self.items(text))


class Word(Listed):
    """Whole words; one that is not in the list, or looks like a special, is <unk>."""

    scheme = "word"
    joiner = " "

    def __init__(self, content: bytes, normaliser: Normaliser):
        super().__init__(content, normaliser)
        self.known = Numbered(normaliser, self.ids)

    def beginnings(self) -> np.ndarray:
        return np.ones(self.size, dtype=bool)

    @staticmethod
    def items(text: str) -> Iterable[str]:
        return text.split()

    @classmethod
    def occurrences(cls, block: TextBlock, normaliser: "Normalised") -> Counter[str]:
        if not normaliser.whole.wordwise:
            return Counter(
                chain.from_iterable(map(str.split, map(normaliser.whole, block.lines())))
            )
        raw = Counter(block.text().split())
        counts: Counter[str] = Counter()
        for token, count in raw.items():
            for word in normaliser[token]:
                counts[word] += count
        return counts

    def encode_batch(self, texts: Iterable[str]) -> list[list[int]]:
        if not self.normaliser.wordwise:
            return super().encode_batch(texts)
        known = self.known
        return [list(chain.from_iterable(map(known.__getitem__, text.split()))) for text in texts]


class Char(Listed):
    """Characters, with one mark between two words; the mark counts with the word after it."""

    scheme = "char"
    always = (MARK,)

    @staticmethod
    def items(text: str) -> Iterable[str]:
        return text.replace(" ", MARK)

    @classmethod
    def occurrences(cls, block: TextBlock, normaliser: "Normalised") -> Counter[str]:
        counts = Counter("\n".join(map(normaliser.whole, block.lines())).replace(" ", MARK))
        del counts["\n"]
        return counts
