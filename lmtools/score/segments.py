"""Files of a cache: rows sorted by key, never changed once they are there.

A segment is written beside its place and renamed to the hash of its content, so that processes of
any number of machines share a directory without a lock. It may vanish at any time, when another
process has merged it with others: what cannot be read is unknown.

Layout: a header of 32 bytes (MAGIC, and as 8-byte numbers how many rows and the bytes of a value);
the first 8 bytes of each key; then of each row the rest of its key, a checksum of key and value,
and the value.
"""

import contextlib
import hashlib
import os
import re
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

MAGIC = b"lmtools-cache-1\n"
HEADER = struct.Struct("<16sQQ")
NAME = re.compile("[0-9a-f]{32}[.]segment")
KEY, FIRST, CHECK = 32, 8, 8  # bytes of a key, of its beginning, of a checksum
REST = KEY - FIRST + CHECK  # bytes of a row before its value
BIG_ENDIAN = np.dtype(">u8")  # so that numbers are in the order of the bytes
LARGE = 1_000_000  # rows of a segment that is merged with no other any more
MOST = 1 << 26  # rows of a segment: more than merging can make
UNFINISHED = ".new-"
DAY = 86400  # seconds: an unfinished file that is older has no writer any more


class Segment:
    """A segment that is open: the beginnings of its keys are in memory, rows are read when asked
    for. ValueError for a file that is not whole.
    """

    def __init__(self, path: Path):
        self.path, self.damaged = path, 0
        self.file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            head = os.pread(self.file, HEADER.size, 0).ljust(HEADER.size)
            magic, self.count, self.width = HEADER.unpack(head)
            size = HEADER.size + self.count * (FIRST + REST + self.width)
            whole = magic == MAGIC and 0 < self.count <= MOST
            if not whole or os.fstat(self.file).st_size != size:
                raise ValueError("not a whole segment of a cache")
            firsts = read_exactly(self.file, self.count * FIRST, HEADER.size)
        except BaseException:
            self.close()
            raise
        self.firsts = np.frombuffer(firsts, BIG_ENDIAN).astype(np.uint64)
        self.begin, self.size = HEADER.size + len(firsts), REST + self.width  # of rows

    def find(self, keys: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
        """Pairs (index into `keys`, value) of those that are here; damaged rows are counted."""
        firsts = np.frombuffer(b"".join(key[:FIRST] for key in keys), BIG_ENDIAN).astype(np.uint64)
        places = np.minimum(np.searchsorted(self.firsts, firsts), self.count - 1)
        for i in np.flatnonzero(self.firsts[places] == firsts).tolist():
            row = read_exactly(self.file, self.size, self.begin + int(places[i]) * self.size)
            if row[: KEY - FIRST] == keys[i][FIRST:] and is_sound(keys[i], row):
                yield i, row[REST:]
            else:
                self.damaged += 1

    def read(self, sound: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The beginnings of keys (rows,) and the rows, uint8 (rows, size); with `sound` each row is
        checked, and damaged ones are left out.
        """
        content = read_exactly(self.file, self.count * self.size, self.begin)
        rows = np.frombuffer(content, np.uint8).reshape(self.count, self.size)
        if not sound:
            return self.firsts, rows
        heads = self.firsts.astype(BIG_ENDIAN).tobytes()
        good = [
            is_sound(heads[n * FIRST :][:FIRST] + row[: KEY - FIRST].tobytes(), row.tobytes())
            for n, row in enumerate(rows)
        ]
        return self.firsts[good], rows[good]

    def close(self) -> None:
        """Release the file."""
        with contextlib.suppress(OSError):
            os.close(self.file)


def is_sound(key: bytes, row: bytes) -> bool:
    """Whether the checksum of a row is that of its key and value."""
    return row[KEY - FIRST : REST] == checksum(key, row[REST:])


def checksum(key: bytes, value: bytes) -> bytes:
    """What vouches for a row."""
    return hashlib.sha256(key + value).digest()[:CHECK]


def read_exactly(file: int, size: int, place: int) -> bytes:
    """`size` bytes from `place` on; OSError where there are not so many."""
    parts = []
    while size:
        part = os.pread(file, min(size, 1 << 30), place)
        if not part:
            raise OSError("the file ends early")
        parts.append(part)
        size, place = size - len(part), place + len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def write_values(folder: Path, values: Mapping[bytes, bytes]) -> list[Path]:
    """Write values by key, a segment for each size of a value; the files."""
    by_width: dict[int, list[bytes]] = {}
    for key, value in values.items():
        by_width.setdefault(len(value), []).append(key)
    made = []
    for width, keys in by_width.items():
        firsts = np.frombuffer(b"".join(key[:FIRST] for key in keys), BIG_ENDIAN)
        content = b"".join(key[FIRST:] + checksum(key, values[key]) + values[key] for key in keys)
        rows = np.frombuffer(content, np.uint8).reshape(len(keys), REST + width)
        made.append(write_segment(folder, firsts.astype(np.uint64), rows))
    return made


def merge_segments(
    folder: Path, paths: Iterable[Path], doubtful: Iterable[Path] = ()
) -> list[Path]:
    """Write the rows of some segments as one for each size of a value, then remove those; the new
    files. Each row of the `doubtful` is checked. Another process may do the same: what it wrote
    holds what it removed.
    """
    read: list[Path] = []
    by_size: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
    for path in sorted(paths):  # so that whoever merges them keeps the same of two values of a key
        with contextlib.suppress(OSError, ValueError), contextlib.closing(Segment(path)) as one:
            by_size.setdefault(one.size, []).append(one.read(path in doubtful))
            read.append(path)
    made = [
        write_segment(folder, *map(np.concatenate, zip(*parts, strict=True)))
        for parts in by_size.values()
        if any(len(firsts) for firsts, _ in parts)
    ]
    for path in {*read} - {*made}:
        with contextlib.suppress(OSError):
            path.unlink()
    return made


def write_segment(folder: Path, firsts: np.ndarray, rows: np.ndarray) -> Path:
    """Write rows, in any order, one of each key; the file. Of two keys with the same beginning one
    is lost: among a billion, there are two such with a probability of 3%.
    """
    firsts, chosen = np.unique(firsts, return_index=True)
    head = HEADER.pack(MAGIC, len(firsts), rows.shape[1] - REST)
    parts = head, firsts.astype(BIG_ENDIAN).tobytes(), rows[chosen].tobytes()
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f"{UNFINISHED}{os.urandom(8).hex()}"
    try:
        with open(new, "xb") as stream:
            stream.writelines(parts)
        path = folder / f"{digest.hexdigest()[:32]}.segment"
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
    return path


def list_segments(folder: Path) -> list[Path]:
    """The segments in a directory that may not be there; what killed writers left is removed."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    for name in names:
        if name.startswith(UNFINISHED):
            with contextlib.suppress(OSError):
                if time.time() - (folder / name).stat().st_mtime > DAY:
                    (folder / name).unlink()
    return [folder / name for name in names if NAME.fullmatch(name)]
