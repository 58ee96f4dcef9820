"""Arrays in unnamed files, so that estimation takes disk and not memory; records that are dealt
into ranges of their keys and sorted one range at a time.
"""

import contextlib
import tempfile
from collections.abc import Iterable, Iterator

import numpy as np

BLOCK = 1 << 18  # rows that are read at once
MOST = 256  # ranges: a byte numbers them
STRIDE = 64  # of so many keys one is looked at to choose ranges


class DiskArray:
    """A growing array of `dtype` in a file without name, which vanishes with the process."""

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

    def close(self) -> None:
        """Give the disk back; what could not be written is not wanted any more."""
        with contextlib.suppress(OSError):
            self.file.close()

    def __del__(self):
        if hasattr(self, "file"):  # so that it does not wait for a warning of the collector
            self.close()


class Buckets:
    """Records of `dtype` by ranges of keys that fit memory, and what is made of them in order."""

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
