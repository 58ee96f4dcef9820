"""The n-grams of a model's highest order on disk: they are read in the order of their contexts, and
looked up many at a time.
"""

from collections.abc import Iterator

import numpy as np

from lmtools.base.errors import UserError
from lmtools.ngram.backoff import SHIFT, ones, pack
from lmtools.ngram.disk import DiskArray, split

RANGES = 64  # of contexts, each of which fits memory
ROW = np.dtype([("key", "i8"), ("prob", "f8")])


class DiskLevel:
    """A Level of the highest order in unnamed files of `folder`, dealt by ranges of its `contexts`,
    the number of n-grams one shorter; `twice`: the error on an n-gram that is there twice.
    """

    def __init__(self, folder, contexts: int, twice: UserError | None = None):
        self.width, self.twice = -(-contexts // RANGES), twice
        self.parts = [DiskArray(folder, ROW) for _ in range(RANGES)]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def backoff(self) -> np.ndarray:
        return ones(len(self))

    def add(self, key: np.ndarray, prob: np.ndarray, backoff: np.ndarray | None = None) -> None:
        """Add n-grams, in any order; those of the highest order need no back-off weights."""
        rows = np.empty(len(key), dtype=ROW)
        rows["key"], rows["prob"] = key, prob
        where = ((key >> SHIFT) // self.width).astype(np.uint8)
        for number, chosen in split(where, RANGES):
            self.parts[number].append(rows[chosen])

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """See Level.blocks."""
        for number in range(RANGES):
            if len(self.parts[number]):
                yield self.read(number)

    def read(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Read the keys and probabilities of a range, sorted."""
        rows = self.parts[number].read()
        key = np.ascontiguousarray(rows["key"])
        prob = np.ascontiguousarray(rows["prob"])
        if (np.diff(key) < 0).any():
            by_key = np.argsort(key)
            key, prob = key[by_key], prob[by_key]
        if self.twice and (np.diff(key) == 0).any():
            raise self.twice
        return key, prob

    def look_up(self, context: np.ndarray, word: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See Level.look_up."""
        hit, prob = np.zeros(len(context), dtype=bool), np.zeros(len(context))
        known = np.flatnonzero(context >= 0)
        wanted = pack(context[known], word[known])
        for number, chosen in split((context[known] // self.width).astype(np.uint8), RANGES):
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
            rows.add(content["key"], content["prob"], np.ones(len(content)))
            part.close()
