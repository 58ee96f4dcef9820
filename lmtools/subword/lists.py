"""Vocabularies that are plain lists sorted by frequency: words, or characters with a mark between words."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from lmtools.errors import UserError
from lmtools.subword.base import SPECIALS, UNK, LeftOut, Subword, room
from lmtools.text import MARK, Normaliser


class Listed(Subword):
    """A vocabulary in `vocab.txt`: `item<TAB>count`, the most frequent first (ties by alphabet), the specials not among them.

    What is not in the list is <unk>: one id, and one probability, for all of it.
    """

    file = "vocab.txt"
    always: tuple[str, ...] = ()  # items that lead the list whether they occur or not

    def __init__(self, content: bytes, normaliser: Normaliser):
        super().__init__(content, normaliser)
        self.ids = dict(zip(self.vocabulary[len(SPECIALS) :], range(len(SPECIALS), self.size), strict=True))

    @classmethod
    def learn(cls, lines: Iterable[str], vocab_size: int | None, min_count: int, sentences: int) -> tuple[bytes, LeftOut]:
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(cls.items(line))
        chosen = cls.chosen(counts, vocab_size, min_count)
        missing = counts.keys() - set(chosen)
        return cls.written(chosen, counts), LeftOut.of(len(missing), sum(counts[item] for item in missing), counts.total())

    @classmethod
    def listing(cls, counts: Mapping[str, int], vocab_size: int | None = None, min_count: int = 1) -> bytes:
        """The model's content from how often each item occurs."""
        return cls.written(cls.chosen(counts, vocab_size, min_count), counts)

    @classmethod
    def chosen(cls, counts: Mapping[str, int], vocab_size: int | None, min_count: int) -> list[str]:
        """The items of the list, in order."""
        frequent = (item for item in counts if counts[item] >= min_count and item not in (*SPECIALS, *cls.always))
        chosen = [*cls.always, *sorted(frequent, key=lambda item: (-counts[item], item))]
        if len(chosen) == len(cls.always):
            raise UserError(f"the text holds nothing that occurs {min_count} times; give one sentence a line, or a lower --min-count")
        return chosen[: room(vocab_size, len(chosen))]

    @staticmethod
    def written(items: Iterable[str], counts: Mapping[str, int]) -> bytes:
        """The content of a list of these items."""
        return "".join(f"{item}\t{counts.get(item, 0)}\n" for item in items).encode()

    @staticmethod
    def items(text: str) -> Iterable[str]:
        """What is counted in a normalised text."""
        raise NotImplementedError

    def read(self, content: bytes) -> tuple[str, ...]:
        *fields, rest = content.decode().replace("\n", "\t").split("\t")  # one list: of 800,000 words, a list each takes seconds
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

    def beginnings(self) -> np.ndarray:
        return np.ones(self.size, dtype=bool)

    @staticmethod
    def items(text: str) -> Iterable[str]:
        return text.split()


class Char(Listed):
    """Characters, with one mark between two words; the mark counts with the word after it."""

    scheme = "char"
    always = (MARK,)

    @staticmethod
    def items(text: str) -> Iterable[str]:
        return text.replace(" ", MARK)
