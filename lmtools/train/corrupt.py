"""References corrupted as a recogniser mishears: lists to learn from that no recogniser made."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.evaluate.metrics import METRICS

HYPOTHESES = 8  # of a list, the reference among them
PLACES = 2.0  # that are misheard, on average, beside the first
WANTED = "heard", "said", "count"


class Misheard(NamedTuple):
    """What is heard in place of some words, and the chance of each."""

    texts: tuple[str, ...]
    chances: np.ndarray


class Corruptor:
    """Confusions by what is said: `table`, rows (heard, said, count)."""

    def __init__(self, table: list[tuple[str, str, float]], hypotheses: int | None = None):
        self.table, self.hypotheses = table, hypotheses or HYPOTHESES
        counts: dict[tuple[str, ...], dict[str, float]] = {}
        for heard, said, count in table:
            row = counts.setdefault(tuple(said.split()), {})
            row[heard] = row.get(heard, 0.0) + count
        self.by_said: Mapping[tuple[str, ...], Misheard] = {
            said: Misheard(tuple(row), np.array(list(row.values())) / sum(row.values()))
            for said, row in counts.items()
            if said
        }
        self.longest = max(map(len, self.by_said), default=0)

    @classmethod
    def read(cls, path, hypotheses: int | None = None) -> "Corruptor":
        """Read a file of `lmtools confusions`; UserError for another, or one without confusions."""
        lines = read_lines(path)
        names = next(lines, (1, ""))[1].split("\t")
        if not set(WANTED) <= set(names):
            raise UserError(
                f"{path}:1: the head line does not name {', '.join(WANTED)}; give a file that"
                " lmtools confusions wrote"
            )
        places = [names.index(name) for name in WANTED]
        table = []
        for number, line in lines:
            cells = line.split("\t")
            try:
                heard, said, count = (cells[place] for place in places)
                table.append((heard, said, float(count)))
            except (IndexError, ValueError):
                raise UserError(
                    f"{path}:{number}: not a confusion; give a file that lmtools confusions wrote"
                ) from None
            if not 0 < table[-1][2] < float("inf"):
                raise UserError(f"{path}:{number}: the count is not above 0; mend the line")
        result = cls(table, hypotheses)
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
