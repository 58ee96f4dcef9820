"""The n-grams of one order on disk: sorted there, to be loaded, or those of the highest order to be
read in the order of their contexts and looked up many at a time.
"""

from collections.abc import Iterator

import numpy as np

from lmtools.base.errors import UserError
from lmtools.ngram.backoff import SHIFT, Level, ones, pack
from lmtools.ngram.disk import DiskArray, split

RANGES = 64  # of contexts, each of which fits memory
HIGHEST = np.dtype([("key", "i8"), ("prob", "f8")])  # of the highest order
ROW = np.dtype([("key", "i8"), ("prob", "f8"), ("backoff", "f8")])


class DiskLevel:
    """A Level in unnamed files of `folder`, dealt by ranges of its `contexts`, the
    number of n-grams one shorter; `row`: HIGHEST, or ROW of one that will be loaded; `twice`: the
    error on an n-gram that is there twice.
    """

    def __init__(self, folder, contexts: int, row=HIGHEST, twice: UserError | None = None):
        self.width, self.twice, self.row = -(-contexts // RANGES), twice, row
        self.parts = [DiskArray(folder, row) for _ in range(RANGES)]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def backoff(self) -> np.ndarray:
        return ones(len(self))

    def add(self, key: np.ndarray, prob: np.ndarray, backoff: np.ndarray | None = None) -> None:
        """Add n-grams, in any order; those of the highest order need no back-off weights."""
        rows = np.empty(len(key), dtype=self.row)
        rows["key"], rows["prob"] = key, prob
        if self.row is ROW:
            rows["backoff"] = backoff
        where = ((key >> SHIFT) // self.width).astype(np.uint8)
        for number, chosen in split(where, RANGES):
            self.parts[number].append(rows[chosen])

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """See Level.blocks."""
        for number in range(RANGES):
            if len(self.parts[number]):
                yield self.read(number)

    def read(self, number: int) -> list[np.ndarray]:
        """Read the keys, probabilities and, of a ROW, back-off weights of a range, sorted."""
        rows = self.parts[number].read()
        columns = [np.ascontiguousarray(rows[name]) for name in self.row.names]
        if (np.diff(columns[0]) < 0).any():
            by_key = np.argsort(columns[0])
            columns = [column[by_key] for column in columns]
        if self.twice and (np.diff(columns[0]) == 0).any():
            raise self.twice
        return columns

    def load(self) -> Level:
        """Return the n-grams, of ROWs, in memory, and give the disk back."""
        size, at = len(self), 0
        columns = np.empty(size, dtype=np.int64), np.empty(size), np.empty(size)
        for number, part in enumerate(self.parts):
            rows = slice(at, at + len(part))
            for column, values in zip(columns, self.read(number), strict=True):
                column[rows] = values
            at = rows.stop
            part.close()
        return Level(*columns)

    def look_up(self, context: np.ndarray, word: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See Level.look_up."""
        hit, prob = np.zeros(len(context), dtype=bool), np.zeros(len(context))
        known = np.flatnonzero(context >= 0)
        wanted = pack(context[known], word[known])
        # words that came later, as contexts, are beyond the ranges
        ranges = np.minimum(context[known] // self.width, RANGES - 1).astype(np.uint8)
        for number, chosen in split(ranges, RANGES):
            key, values = self.read(number)
            if not len(key):
                continue
            at = np.minimum(np.searchsorted(key, wanted[chosen]), len(key) - 1)
            rows = known[chosen]
            hit[rows] = key[at] == wanted[chosen]
            prob[rows] = np.where(hit[rows], values[at], 0)
        return hit, prob

    def move_to(self, rows) -> None:
        """Add all to `rows`, and give the disk back."""
        for part in self.parts:
            content = part.read()
            backoff = content["backoff"] if self.row is ROW else np.ones(len(content))
            rows.add(content["key"], content["prob"], backoff)
            part.close()
