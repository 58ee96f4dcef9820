"""Vocabularies that are plain lists sorted by frequency: words, or characters with a mark between words."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from lmtools.errors import UserError
from lmtools.subword.base import SPECIALS, UNK, Subword
from lmtools.text import MARK, Normaliser


class Listed(Subword):
    """A vocabulary in `vocab.txt`: `item<TAB>count`, the most frequent first (ties by alphabet), the specials not among them."""

    file = "vocab.txt"
    always: tuple[str, ...] = ()  # items that lead the list whether they occur or not

    def __init__(self, content: bytes, normaliser: Normaliser):
        super().__init__(content, normaliser)
        self.ids = {item: number for number, item in enumerate(self.vocabulary) if number >= len(SPECIALS)}

    @classmethod
    def learn(cls, lines: Iterable[str], vocab_size: int | None, min_count: int, sentences: int) -> bytes:
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(cls.items(line))
        return cls.listing(counts, vocab_size, min_count)

    @classmethod
    def listing(cls, counts: Mapping[str, int], vocab_size: int | None = None, min_count: int = 1) -> bytes:
        """The model's content from how often each item occurs."""
        frequent = (item for item in counts if counts[item] >= min_count and item not in (*SPECIALS, *cls.always))
        chosen = [*cls.always, *sorted(frequent, key=lambda item: (-counts[item], item))]
        if len(chosen) == len(cls.always):
            raise UserError(f"the text holds nothing that occurs {min_count} times; give one sentence a line, or a lower --min-count")
        room = len(chosen) if vocab_size is None else vocab_size - len(SPECIALS)
        return "".join(f"{item}\t{counts.get(item, 0)}\n" for item in chosen[:room]).encode()

    @staticmethod
    def items(text: str) -> Iterable[str]:
        """What is counted in a normalised text."""
        raise NotImplementedError

    def read(self, content: bytes) -> tuple[str, ...]:
        rows = [line.split("\t") for line in content.decode().split("\n")[:-1]]
        self.counts = np.array([int(count) for _, count in rows])
        return (*SPECIALS, *(item for item, _ in rows))

    def segment(self, texts: Sequence[str]) -> list[list[int]]:
        ids = self.ids
        return [[ids.get(item, UNK) for item in self.items(text)] for text in texts]

    def surfaces(self, text: str) -> list[str]:
        return list(self.items(text))


class Word(Listed):
    """Whole words; a word that looks like a special counts as unknown."""

    scheme = "word"
    joiner = " "

    def __init__(self, content: bytes, normaliser: Normaliser):
        super().__init__(content, normaliser)
        self.begins = np.ones(self.size, dtype=bool)

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
