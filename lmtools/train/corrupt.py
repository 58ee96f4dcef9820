"""References corrupted as a recogniser mishears: lists to learn from that no recogniser made."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.evaluate.metrics import METRICS

HYPOTHESES = 8  # of a list, the reference among them
PLACES = 2.0  # that are misheard, on average, beside the first


class Confusion(NamedTuple):
    """Words `heard` where others were `said` (either may be empty), `count` times."""

    heard: str
    said: str
    count: int


def read_confusions(path) -> list[Confusion]:
    """Read a table with tabs whose head line names heard, said and count, perhaps among others;
    UserError with the line of anything else.
    """
    lines = read_lines(path)
    head = next(lines, (1, ""))[1].split("\t")
    if not set(Confusion._fields) <= set(head):
        raise UserError(
            f"{path}:1: the head line does not name heard, said, count; name these columns"
        )
    places = [head.index(name) for name in Confusion._fields]
    found = []
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != len(head):
            raise UserError(f"{path}:{number}: not a confusion; give {len(head)} columns")
        heard, said, count = (cells[place] for place in places)
        if not (count.isascii() and count.isdigit() and 0 < len(count) < 10 and int(count)):
            raise UserError(f"{path}:{number}: the count is not above 0; mend the line")
        found.append(Confusion(heard, said, int(count)))
    return found


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
        """Read a table of confusions; UserError for another, or one without any of words."""
        result = cls(read_confusions(path), hypotheses)
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
