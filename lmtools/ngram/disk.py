"""Arrays in unnamed files, so that n-grams take disk and not memory: written at the end, read by
rows; records that are dealt into ranges of their keys and sorted one range at a time; levels of
n-grams.
"""

import contextlib
import mmap
import tempfile
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from lmtools.base.errors import UserError
from lmtools.ngram.backoff import SHIFT, UNKNOWN, Level, NgramRows, cut_contexts, ones, pack

BLOCK = 1 << 18  # rows that are read at once
MOST = 256  # ranges: a byte numbers them
STRIDE = 64  # of so many keys one is looked at to choose ranges
RANGES = 256  # of contexts, numbered by a byte, each of which fits memory
TYPES = {"key": "i8", "prob": "f8", "backoff": "f8", "suffix": "i4"}  # columns of Level


class DiskArray:
    """A growing array of `dtype` in a file of `folder` (None: the system's temporary directory)
    that has no name, so that it vanishes with the process, however that ends.
    """

    def __init__(self, folder, dtype):
        self.file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (open as long as the array)
        self.dtype = np.dtype(dtype)
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def append(self, values: np.ndarray) -> None:
        values = np.ascontiguousarray(values, dtype=self.dtype.base)
        self.file.seek(self.size * self.dtype.itemsize)
        self.file.write(values.reshape(-1).view(np.uint8))
        self.size += len(values)

    def read(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Read those rows, all of them where nothing is said."""
        stop = self.size if stop is None else min(stop, self.size)
        rows = np.empty(max(stop - start, 0), dtype=self.dtype)
        self.file.seek(start * self.dtype.itemsize)
        self.file.readinto(rows.reshape(-1).view(np.uint8))
        return rows

    def blocks(self) -> Iterator[np.ndarray]:
        for start in range(0, self.size, BLOCK):
            yield self.read(start, start + BLOCK)

    def map(self) -> tuple[np.ndarray, mmap.mmap | None]:
        """Return all rows, to be read in the file where they are asked for, and the map of the
        file, None where there are none; no row may come any more.
        """
        if not self.size:
            return np.empty(0, dtype=self.dtype), None
        self.file.flush()
        view = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(view, dtype=self.dtype), view

    def close(self) -> None:
        """Give the disk back; what could not be written is not wanted any more."""
        with contextlib.suppress(OSError):
            self.file.close()

    def __del__(self):
        if hasattr(self, "file"):  # so that it does not wait for a warning of the collector
            self.close()


class Buckets:
    """Records of `dtype` by ranges of their keys, which `bounds` part: every range fits memory, and
    what is made of it returns to the order in which the records came.
    """

    def __init__(self, folder, bounds: np.ndarray, dtype):
        self.bounds = bounds
        self.parts = [DiskArray(folder, dtype) for _ in range(len(bounds) + 1)]
        self.where = DiskArray(folder, np.uint8)

    def deal(self, keys: np.ndarray, records: np.ndarray) -> None:
        where = np.searchsorted(self.bounds, keys, side="right").astype(np.uint8)
        self.where.append(where)
        for number, rows in split(where, len(self.parts)):
            self.parts[number].append(records[rows])

    def collect(self, results: list[DiskArray]) -> Iterator[np.ndarray]:
        """Yield rows made of each range, in the order of the records that were dealt, in blocks."""
        taken = [0] * len(results)
        for where in self.where.blocks():
            rows = np.empty(len(where), dtype=results[0].dtype)
            for number, chosen in split(where, len(results)):
                rows[chosen] = results[number].read(taken[number], taken[number] + len(chosen))
                taken[number] += len(chosen)
            yield rows


def split(where: np.ndarray, parts: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the parts that are not empty, and the rows of each, rising."""
    if parts == 1:
        yield 0, np.arange(len(where))
        return
    by_part = np.argsort(where, kind="stable")
    ends = np.cumsum(np.bincount(where, minlength=parts)).tolist()
    for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        if end > start:
            yield number, by_part[start:end]


def choose_bounds(keys: Iterable[np.ndarray], total: int, room: int) -> np.ndarray:
    """Return bounds between at most MOST ranges of `keys`, of about `room` of the `total` each."""
    if total <= room:
        return np.empty(0, dtype=np.int64)
    # copies: a view would hold its block
    sample = np.sort(np.concatenate([block[::STRIDE].copy() for block in keys]))
    # ranges are uneven: a few more than needed
    number = min(MOST, -(-total * 5 // (max(room, 1) * 4)))
    return np.unique(sample[np.arange(1, number) * len(sample) // number])


class LevelFile:
    """A Level written in the order of its keys to unnamed files of `folder`, `columns` of TYPES."""

    def __init__(self, folder, columns: Sequence[str]):
        self.columns = {name: DiskArray(folder, TYPES[name]) for name in columns}

    def append(self, **columns: np.ndarray) -> None:
        for name, column in self.columns.items():
            column.append(columns[name])

    def map(self) -> Level:
        """Return the n-grams; those without back-off weights are of the highest order."""
        pairs = {name: column.map() for name, column in self.columns.items()}
        arrays = {name: array for name, (array, _) in pairs.items()}
        backoff = arrays.get("backoff", ones(len(arrays["key"])))
        maps = [view for _, view in pairs.values() if view]
        return Level(arrays["key"], arrays["prob"], backoff, suffix=arrays.get("suffix"), maps=maps)


class DiskLevel:
    """A Level in unnamed files of `folder`, whose blocks are dealt by ranges of its `contexts`, the
    number of n-grams one shorter, with these `columns` of TYPES; `twice`: the error on an n-gram
    that comes again.
    """

    def __init__(self, folder, contexts: int, columns: Sequence[str], twice: UserError):
        self.folder, self.width, self.twice = folder, -(-contexts // RANGES), twice
        self.columns = {name: DiskArray(folder, TYPES[name]) for name in columns}
        self.ends: list[np.ndarray] = []  # of each block, where its rows of each range end

    def __len__(self) -> int:
        return len(self.columns["key"])

    @property
    def backoff(self) -> np.ndarray:
        return ones(len(self))

    def append(self, **columns: np.ndarray) -> None:
        """Add n-grams, in any order; columns that this level has not are left out."""
        where = ((columns["key"] >> SHIFT) // self.width).astype(np.uint8)
        by_range = np.argsort(where, kind="stable")
        self.ends.append(len(self) + np.cumsum(np.bincount(where, minlength=RANGES)))
        for name, column in self.columns.items():
            column.append(columns[name][by_range])

    def blocks(self) -> Iterator[NgramRows]:
        for number in range(RANGES):
            columns = self.read(number)
            key, prob = columns["key"], columns["prob"]
            suffix = np.broadcast_to(np.int32(UNKNOWN), len(key))
            for rows in cut_contexts(key):
                yield NgramRows(key[rows], prob[rows], suffix[rows])

    def read(self, number: int) -> dict[str, np.ndarray]:
        columns, starts = {}, [0, *(int(ends[-1]) for ends in self.ends[:-1])]
        cuts = [
            (int(ends[number - 1]) if number else start, int(ends[number]))
            for start, ends in zip(starts, self.ends, strict=False)
        ]
        for name, column in self.columns.items():
            nothing = np.empty(0, dtype=TYPES[name])
            columns[name] = np.concatenate([nothing, *(column.read(*cut) for cut in cuts)])
        if (np.diff(columns["key"]) < 0).any():
            by_key = np.argsort(columns["key"])
            for name in columns:
                columns[name] = columns[name][by_key]
        if (np.diff(columns["key"]) == 0).any():
            raise self.twice
        return columns

    def sort(self) -> Level:
        """Return a Level of files."""
        ordered = LevelFile(self.folder, list(self.columns))
        for number in range(RANGES):
            ordered.append(**self.read(number))
        for column in self.columns.values():
            column.close()
        return ordered.map()

    def look_up(self, context: np.ndarray, word: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
        for start in range(0, len(self), BLOCK):
            columns = {
                name: column.read(start, start + BLOCK) for name, column in self.columns.items()
            }
            rows.append(**{"backoff": ones(len(columns["key"])), **columns})
        for column in self.columns.values():
            column.close()
