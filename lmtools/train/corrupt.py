"""References corrupted as a recogniser mishears: lists to learn from that no recogniser made."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lmtools.base.errors import UserError
from lmtools.evaluate.metrics import METRICS
from lmtools.formats.confusions import Confusion, read_confusions

HYPOTHESES = 8  # of a list, the reference among them
PLACES = 2.0  # that are misheard, on average, beside the first


class Misheard(NamedTuple):
    """What is heard in place of some words, and the chance of each."""

    texts: tuple[str, ...]
    chances: np.ndarray


class Corruptor:
    """Confusions by what is said: `table` has them as they were read."""

    def __init__(self, table: Sequence[Confusion], hypotheses: int | None = None):
        self.table, self.hypotheses = table, hypotheses or HYPOTHESES
        counts: dict[tuple[str, ...], dict[str, int]] = {}
        for one in table:
            row = counts.setdefault(tuple(one.said.split()), {})
            row[one.heard] = row.get(one.heard, 0) + one.count
        self.by_said: Mapping[tuple[str, ...], Misheard] = {
            said: Misheard(tuple(row), np.array(list(row.values())) / sum(row.values()))
            for said, row in counts.items()
            if said
        }
        self.longest = max(map(len, self.by_said), default=0)

    @classmethod
    def read(cls, path, hypotheses: int | None = None) -> "Corruptor":
        """Read a file of `lmtools confusions`; UserError for another, or one without confusions."""
        result = cls(read_confusions(path, Confusion._fields[:3]), hypotheses)
        if not result.by_said:
            raise UserError(f"{path}: holds no confusion of words; give more lists to learn from")
        return result

    def draw(self, ref: str, generator: np.random.Generator) -> tuple[tuple[str, ...], np.ndarray]:
        """Return a reference and different corruptions of it, and their errors; the reference alone
        where no word of it has a confusion.
        """
        words, texts = ref.split(), dict.fromkeys([ref])
        spans = [
            (begin, end)
            for begin in range(len(words))
            for end in range(begin + 1, min(len(words), begin + self.longest) + 1)
            if tuple(words[begin:end]) in self.by_said
        ]
        for _ in range(2 * self.hypotheses if spans else 0):
            if len(texts) == self.hypotheses:
                break
            texts[self.mishear(words, spans, generator)] = None
        return tuple(texts), METRICS["wer"].statistics(ref, list(texts))[:, :3].sum(1)

    def mishear(self, words: list[str], spans: list, generator: np.random.Generator) -> str:
        """Return the text of `words` with some `spans` misheard."""
        result, end = list(words), len(words)
        number = min(len(spans), 1 + generator.poisson(PLACES - 1))
        for place in sorted(generator.choice(len(spans), number, replace=False), reverse=True):
            first, last = spans[place]
            if last > end:  # it shares words with a span that was misheard
                continue
            texts, chances = self.by_said[tuple(words[first:last])]
            result[first:last] = texts[generator.choice(len(texts), p=chances)].split()
            end = first
        return " ".join(result)
