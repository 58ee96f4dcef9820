"""The n-grams of one order on disk: dealt by ranges of contexts and sorted, or written in order and
mapped.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from lmtools.base.errors import UserError
from lmtools.ngram.backoff import SHIFT, UNKNOWN, Level, Rows, cut_contexts, ones, pack
from lmtools.ngram.disk import DiskArray, split

RANGES = 64  # of contexts, each of which fits memory
# columns of Level, and where an n-gram stood before it was sorted
TYPES = {"key": "i8", "prob": "f8", "backoff": "f8", "suffix": "i4", "place": "i4"}


class LevelFile:
    """A Level that is written in the order of its keys, a column at a time to unnamed files of
    `folder`: these `columns` of TYPES.
    """

    def __init__(self, folder, columns: Sequence[str]):
        self.columns = {name: DiskArray(folder, TYPES[name]) for name in columns}

    def append(self, **columns: np.ndarray) -> None:
        """Add n-grams that come after all others."""
        for name, column in self.columns.items():
            column.append(columns[name])

    def map(self) -> Level:
        """Return the n-grams; those without back-off weights are of the highest order."""
        pairs = {name: column.map() for name, column in self.columns.items()}
        arrays = {name: array for name, (array, _) in pairs.items()}
        backoff = arrays.get("backoff", ones(len(arrays["key"])))
        maps = [view for _, view in pairs.values() if view]
        return Level(arrays["key"], arrays["prob"], backoff, arrays.get("suffix"), maps)


class DiskLevel:
    """A Level in unnamed files of `folder`, dealt by ranges of its `contexts`, the number of
    n-grams one shorter, with these `columns` of TYPES; `twice`: the error on an n-gram that comes
    again.
    """

    def __init__(self, folder, contexts: int, columns: Sequence[str], twice: UserError):
        self.folder, self.width, self.twice = folder, -(-contexts // RANGES), twice
        self.row = np.dtype([(name, TYPES[name]) for name in columns])
        self.parts = [DiskArray(folder, self.row) for _ in range(RANGES)]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def backoff(self) -> np.ndarray:
        return ones(len(self))

    def append(self, **columns: np.ndarray) -> None:
        """Add n-grams, in any order; columns that this level has not are left out."""
        rows = np.empty(len(columns["key"]), dtype=self.row)
        for name in self.row.names:
            rows[name] = columns[name]
        where = ((rows["key"] >> SHIFT) // self.width).astype(np.uint8)
        for number, chosen in split(where, RANGES):
            self.parts[number].append(rows[chosen])

    def blocks(self) -> Iterator[Rows]:
        """See Level.blocks."""
        for number in range(RANGES):
            columns = self.read(number)
            key, prob = columns["key"], columns["prob"]
            suffix = columns.get("suffix", np.broadcast_to(np.int32(UNKNOWN), len(key)))
            for rows in cut_contexts(key):
                yield Rows(key[rows], prob[rows], suffix[rows])

    def read(self, number: int) -> dict[str, np.ndarray]:
        """Read the columns of a range, sorted."""
        rows = self.parts[number].read()
        columns = {name: np.ascontiguousarray(rows[name]) for name in self.row.names}
        del rows
        if (np.diff(columns["key"]) < 0).any():
            by_key = np.argsort(columns["key"])
            for name in columns:
                columns[name] = columns[name][by_key]
        if (np.diff(columns["key"]) == 0).any():
            raise self.twice
        return columns

    def sort(self) -> tuple[Level, np.ndarray]:
        """Return the n-grams as a Level of files, and what `place` each has in it, (N,) int32; give
        the ranges back.
        """
        sorted_rows = LevelFile(self.folder, [name for name in self.row.names if name != "place"])
        places = np.empty(len(self) if "place" in self.row.names else 0, dtype=np.int32)
        at = 0
        for number, part in enumerate(self.parts):
            columns = self.read(number)
            sorted_rows.append(**columns)
            size = len(columns["key"])
            if len(places):
                places[columns["place"]] = np.arange(at, at + size, dtype=np.int32)
            at += size
            part.close()
        return sorted_rows.map(), places

    def look_up(self, context: np.ndarray, word: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See Level.look_up."""
        hit, prob = np.zeros(len(context), dtype=bool), np.zeros(len(context))
        known = np.flatnonzero(context >= 0)
        wanted = pack(context[known], word[known])
        # words that came later, as contexts, are beyond the ranges
        ranges = np.minimum(context[known] // self.width, RANGES - 1).astype(np.uint8)
        for number, chosen in split(ranges, RANGES):
            columns = self.read(number)
            key, values = columns["key"], columns["prob"]
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
            backoff = content["backoff"] if "backoff" in self.row.names else ones(len(content))
            rows.append(key=content["key"], prob=content["prob"], backoff=backoff)
            part.close()
