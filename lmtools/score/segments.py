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
import stat
import struct
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

MAGIC = b"lmtools-cache-1\n"
HEADER = struct.Struct("<16sQQ")
NAME = re.compile("[0-9a-f]{32}[.]segment")
KEY, FIRST, CHECK = 32, 8, 8  # bytes of a key, of its beginning, of a checksum
REST = KEY - FIRST + CHECK  # bytes of a row before its value
BIG_ENDIAN = np.dtype(">u8")  # so that numbers are in the order of the bytes
LARGE = 1 << 24  # bytes of a segment that is merged with no other any more
TOGETHER = 8  # times LARGE: bytes that are merged at once, so that memory holds a few times as much
WRITTEN = 1 << 20  # bytes of rows that are put in order at once
MOST = 1 << 26  # rows of a segment: more than merging can make
UNFINISHED = ".new-"
DAY = 86400  # seconds: an unfinished file that is older has no writer any more


class Segment:
    """A segment: the beginnings of its keys are in memory; its file is open only while rows are
    read, so that any number of segments needs no descriptors. ValueError for a file that is not
    whole, OSError for what is no file or cannot be read.
    """

    def __init__(self, path: Path):
        self.path, self.damaged = path, 0
        with open_regular(path) as file:
            head = os.pread(file, HEADER.size, 0).ljust(HEADER.size)
            magic, self.count, self.width = HEADER.unpack(head)
            self.bytes = HEADER.size + self.count * (FIRST + REST + self.width)
            whole = magic == MAGIC and 0 < self.count <= MOST
            if not whole or os.fstat(file).st_size != self.bytes:
                raise ValueError("not a whole segment of a cache")
            firsts = read_exactly(file, self.count * FIRST, HEADER.size)
        self.firsts = np.frombuffer(firsts, BIG_ENDIAN).astype(np.uint64)
        self.begin, self.size = HEADER.size + len(firsts), REST + self.width  # of rows

    def find(self, keys: Sequence[bytes]) -> dict[int, bytes]:
        """Return the values here by index into `keys`, count damaged ones; OSError: it is gone."""
        firsts = np.frombuffer(b"".join(key[:FIRST] for key in keys), BIG_ENDIAN).astype(np.uint64)
        places = np.minimum(np.searchsorted(self.firsts, firsts), self.count - 1)
        values: dict[int, bytes] = {}
        if not len(here := np.flatnonzero(self.firsts[places] == firsts)):
            return values
        with open_regular(self.path) as file:
            for i in here.tolist():
                row = read_exactly(file, self.size, self.begin + int(places[i]) * self.size)
                if row[: KEY - FIRST] == keys[i][FIRST:] and is_sound(keys[i], row):
                    values[i] = row[REST:]
                else:
                    self.damaged += 1
        return values

    def read(self, sound: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Read the beginnings of keys (rows,) and the rows, uint8 (rows, size); with `sound` each
        row is checked, and damaged ones are left out.
        """
        with open_regular(self.path) as file:
            content = read_exactly(file, self.count * self.size, self.begin)
        rows = np.frombuffer(content, np.uint8).reshape(self.count, self.size)
        if not sound:
            return self.firsts, rows
        heads = self.firsts.astype(BIG_ENDIAN).tobytes()
        good = [
            is_sound(heads[n * FIRST :][:FIRST] + row[: KEY - FIRST].tobytes(), row.tobytes())
            for n, row in enumerate(rows)
        ]
        return self.firsts[good], rows[good]


@contextlib.contextmanager
def open_regular(path: Path) -> Iterator[int]:
    """Open a regular file to read; OSError for anything else, which is not waited for."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError("not a regular file")
        yield file
    finally:
        os.close(file)


def is_sound(key: bytes, row: bytes) -> bool:
    """Return whether the checksum of a row is that of its key and value."""
    return row[KEY - FIRST : REST] == checksum(key, row[REST:])


def checksum(key: bytes, value: bytes) -> bytes:
    """Return the checksum of a row: the first bytes of the SHA-256 of its key and value."""
    return hashlib.sha256(key + value).digest()[:CHECK]


def read_exactly(file: int, size: int, place: int) -> bytes:
    """Read `size` bytes from `place` on; OSError where there are not so many."""
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
    paths = []
    for width, keys in by_width.items():
        firsts = np.frombuffer(b"".join(key[:FIRST] for key in keys), BIG_ENDIAN)
        content = b"".join(key[FIRST:] + checksum(key, values[key]) + values[key] for key in keys)
        rows = np.frombuffer(content, np.uint8).reshape(len(keys), REST + width)
        paths.append(write_segment(folder, firsts.astype(np.uint64), rows))
    return paths


def merge_segments(
    folder: Path, paths: Iterable[Path], doubtful: Container[Path] = ()
) -> list[Path]:
    """Write the rows of some segments as fewer, of about TOGETHER * LARGE bytes at most, then
    remove those; the new files. Each row of the `doubtful` is checked. Another process may do the
    same: what it wrote holds what it removed.
    """
    files = []
    for group in group_segments(paths):
        if len(group) == 1 and group[0].path not in doubtful:
            files.append(group[0].path)
        else:
            files += merge_group(folder, group, doubtful)
    return files


def merge_group(folder: Path, group: Sequence[Segment], doubtful: Container[Path]) -> list[Path]:
    """Merge segments with values of one size, which are held in memory; see `merge_segments`."""
    read: list[Path] = []
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    for segment in group:
        with contextlib.suppress(OSError):
            parts.append(segment.read(segment.path in doubtful))
            read.append(segment.path)
    if not parts:
        return []
    firsts, rows = map(np.concatenate, zip(*parts, strict=True))
    parts.clear()
    new = [write_segment(folder, firsts, rows)] if len(firsts) else []
    for path in {*read} - {*new}:
        with contextlib.suppress(OSError):
            path.unlink()
    return new


def group_segments(paths: Iterable[Path]) -> Iterator[list[Segment]]:
    """Yield the existing segments of `paths` in groups that have values of one size and together
    TOGETHER * LARGE bytes at most; a larger one is alone.
    """
    segments = []
    for path in paths:
        with contextlib.suppress(OSError, ValueError):
            segments.append(Segment(path))
    group: list[Segment] = []
    for segment in sorted(segments, key=lambda member: (member.size, member.bytes)):
        total = sum(member.bytes for member in group) + segment.bytes
        if group and (segment.size != group[0].size or total > TOGETHER * LARGE):
            yield group
            group = []
        group.append(segment)
    if group:
        yield group


def small_segments(paths: Iterable[Path]) -> list[Path]:
    """Return those of `paths` that exist and are small enough to be merged."""
    small = []
    for path in paths:
        with contextlib.suppress(OSError):
            if path.stat().st_size < LARGE:
                small.append(path)
    return small


def write_segment(folder: Path, firsts: np.ndarray, rows: np.ndarray) -> Path:
    """Write rows, in any order, one of each key; the file.

    Of two values of a key the one with the lower checksum stays: whoever merges which segments at
    the same time, nobody removes the one that all others dropped. Of two keys with the same
    beginning one is lost: among a billion, there are two such with a probability of 3%.
    """
    checks = np.ascontiguousarray(rows[:, KEY - FIRST : REST]).view(BIG_ENDIAN)[:, 0]
    order = np.lexsort((checks.astype(np.uint64), firsts))
    firsts, chosen = np.unique(firsts[order], return_index=True)
    chosen = order[chosen]
    head = HEADER.pack(MAGIC, len(firsts), rows.shape[1] - REST)
    digest = hashlib.sha256()
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f"{UNFINISHED}{os.urandom(8).hex()}"
    step = max(1, WRITTEN // rows.shape[1])
    try:
        with open(new, "xb") as stream:
            for part in (
                head,
                firsts.astype(BIG_ENDIAN).tobytes(),
                *(rows[chosen[n : n + step]].tobytes() for n in range(0, len(chosen), step)),
            ):
                digest.update(part)
                stream.write(part)
        path = folder / f"{digest.hexdigest()[:32]}.segment"
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
    return path


def list_segments(folder: Path) -> list[Path]:
    """List the segments in a directory, if it is there; remove what killed writers left."""
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
