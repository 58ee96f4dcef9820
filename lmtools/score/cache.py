"""A content-addressed store of scores and vectors: what a model gave a text once is never computed
again, whoever asks.

The key is (signature, sentence), not a file: another list, depth or weight costs nothing. A cache
only ever helps: one that cannot be used is given up with one warning, one that cannot be written is
read.

Its files, segments, hold rows sorted by key and never change once they are there. A segment is
written beside its place and renamed to the hash of its content, so that processes of any number of
machines share a directory without a lock. It may vanish at any time, when another process has
merged it with others: what cannot be read is unknown. Layout: a header of 32 bytes (MAGIC, and as
8-byte numbers how many rows and the bytes of a value); the first 8 bytes of each key; then of each
row the rest of its key, a checksum of key and value, and the value.
"""

import contextlib
import errno
import hashlib
import json
import os
import re
import stat
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lmtools.base.log import say

EVERY = 1.0  # seconds of work that a crash may lose
MERGED = 8  # small segments of a process that become one
MANY = 32  # segments from which those of earlier runs are merged
MAGIC = b"lmtools-cache-1\n"
HEADER = struct.Struct("<16sQQ")
NAME = re.compile("[0-9a-f]{32}[.]segment")
KEY, FIRST, CHECK = 32, 8, 8  # bytes of a key, of its beginning, of a checksum
REST = KEY - FIRST + CHECK  # bytes of a row before its value
BIG_ENDIAN = np.dtype(">u8")  # so that numbers are in the order of the bytes
LARGE = 1 << 24  # bytes of a segment that is merged with no other any more
MOST_MERGED = 1 << 27  # bytes that are merged at once: memory holds a few times as much
MOST = 1 << 26  # rows of a segment: more than merging can make
UNFINISHED = ".new-"
DAY = 86400  # seconds: an unfinished file that is older has no writer any more


def cache_directory(name: str):
    """Return the cache that a user calls `name`: a directory, None for `none`, for `default`
    $LMTOOLS_CACHE, else lmtools in the user's cache directory.
    """
    if name != "default":
        return None if name == "none" else name
    if base := os.environ.get("LMTOOLS_CACHE"):
        return Path(base)
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lmtools"


class Kind(NamedTuple):
    """Kind of cached values: directory, sizes, and conversion to bytes and back."""

    name: str
    fits: Callable[[int], bool]
    pack: Callable[[Any], bytes]
    unpack: Callable[[bytes], Any]


SCORES = Kind(
    "scores",
    lambda width: width == 8,
    struct.Struct("<d").pack,
    lambda content: struct.unpack("<d", content)[0],
)
VECTORS = Kind(
    "vectors",
    lambda width: width % 4 == 0,
    lambda value: value.astype("<f4").tobytes(),
    lambda content: np.frombuffer(content, "<f4"),
)


class Cache:
    """Sums of log-probabilities or vectors by (model signature, sentence), safe against crashes and
    shared by processes of any number of machines.

    With `directory` None nothing is kept. What is put goes to a segment each second and when the
    cache is closed. Damaged rows are unknown; their segments are told once and taken away.
    """

    def __init__(self, directory, signature: Mapping[str, str], kind: Kind = SCORES):
        self.kind, self.prefix = kind, json.dumps(dict(signature), sort_keys=True).encode()
        self.fresh: dict[bytes, bytes] = {}  # rows that are in no segment yet
        self.segments: dict[Path, Segment] = {}
        self.own: list[Path] = []  # small segments that this process wrote
        self.broken: Counter[Path] = Counter()  # damaged rows of segments; 1 of one that is none
        self.writing, self.written = True, time.monotonic()
        self.directory, self.folder = directory, None
        if directory is not None:
            name = hashlib.sha256(self.prefix).hexdigest()[:16]
            self.folder = Path(directory) / kind.name / name

    def key(self, sentence) -> bytes:
        """Return the address of a sentence's value."""
        return hashlib.sha256(self.prefix + repr(sentence).encode()).digest()

    def get(self, sentences: Sequence) -> dict[int, Any]:
        """Return the values that are known, by index into `sentences`."""
        if self.folder is None:
            return {}
        keys = [self.key(sentence) for sentence in sentences]
        known = {i: self.fresh[key] for i, key in enumerate(keys) if key in self.fresh}
        left = [i for i in range(len(keys)) if i not in known]
        with self.on_error("cache given up", self.release):
            for segment in self.refresh() if left else ():
                with contextlib.suppress(OSError):  # gone or unreadable
                    here, damaged = segment.find([keys[i] for i in left])
                    known |= {left[n]: value for n, value in here.items()}
                    left = [i for i in left if i not in known]
                    self.broken.update({segment.path: damaged} if damaged else {})
        return {i: self.kind.unpack(value) for i, value in known.items()}

    def refresh(self) -> list["Segment"]:
        """Return the segments that are there now; drop those that vanished or do not fit."""
        there = list_segments(self.folder)
        self.segments = {path: self.segments[path] for path in there if path in self.segments}
        for path in there:
            if path in self.segments or path in self.broken:
                continue
            with contextlib.suppress(OSError):  # merged meanwhile, or not ours to read
                try:
                    segment = Segment(path)
                    if not self.kind.fits(segment.width):
                        raise ValueError("values of another kind")
                    self.segments[path] = segment
                except ValueError:
                    self.broken[path] = 1
        return list(self.segments.values())

    def put(self, valued: Iterable[tuple[object, Any]]) -> None:
        """Keep (sentence, value) pairs."""
        if self.folder is not None and self.writing:
            self.fresh |= {self.key(each): self.kind.pack(value) for each, value in valued}
            if time.monotonic() - self.written > EVERY:
                self.write()

    def write(self) -> None:
        """Have segments hold what was put; merge those that have become many, unless large."""
        if self.folder is not None and self.fresh:
            with self.on_error("cache read but not written from here on", self.stop_writing):
                self.own += small_segments(write_values(self.folder, self.fresh))
                self.fresh = {}
                if len(self.own) >= MERGED:
                    self.own = small_segments(merge_segments(self.folder, self.own))
        self.written = time.monotonic()

    def close(self) -> None:
        """Write what is left, tidy up, and say whether something was damaged."""
        self.write()
        if self.folder is not None:
            if self.writing:
                with self.on_error("cache read but not tidied", self.stop_writing):
                    self.tidy()
            if count := self.broken.total():
                say(
                    f"warning: {self.folder}: {count:,} damaged rows or files, computed again;"
                    " remove the directory if more are found next time"
                )
        self.release()

    def tidy(self) -> None:
        """Take broken segments away; merge small ones where there are many, else own ones."""
        for path in self.broken:
            path.unlink(missing_ok=True)
        small = small_segments(list_segments(self.folder))
        if len(small) <= MANY:
            small = [path for path in small if path in self.own]
        if self.own and len(small) > 1:
            merge_segments(self.folder, small)

    def release(self) -> None:
        """Forget all, and keep nothing from here on."""
        self.segments, self.fresh, self.own, self.folder = {}, {}, [], None

    def stop_writing(self) -> None:
        """Keep nothing from here on; what is there is known."""
        self.fresh, self.own, self.writing = {}, [], False

    @contextlib.contextmanager
    def on_error(self, loss: str, give_up: Callable[[], None]) -> Iterator[None]:
        """Warn of what is lost and why where the directory fails, and `give_up` that."""
        try:
            yield
        except (OSError, MemoryError) as error:
            cause = getattr(error, "strerror", None) or error or "not enough memory"
            full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            remedy = "make room on its disk" if full else "check the path and its permissions"
            line = f"warning: {self.directory}: {loss} ({cause}); {remedy}, or give another --cache"
            say(line)
            give_up()


class Segment:
    """A segment: the beginnings of its keys are in memory; its file is open only while rows are
    read, so that any number of segments needs no descriptors. ValueError for a file that is not
    whole, OSError for what is no file or cannot be read.
    """

    def __init__(self, path: Path):
        self.path = path
        with open_regular(path) as file:
            head = os.pread(file, HEADER.size, 0).ljust(HEADER.size)
            magic, self.count, self.width = HEADER.unpack(head)
            self.begin, self.size = HEADER.size + self.count * FIRST, REST + self.width  # of rows
            self.bytes = self.begin + self.count * self.size
            whole = magic == MAGIC and 0 < self.count <= MOST
            if not whole or os.fstat(file).st_size != self.bytes:
                raise ValueError("not a whole segment of a cache")
            self.firsts = as_numbers(read_exactly(file, self.count * FIRST, HEADER.size))

    def find(self, keys: Sequence[bytes]) -> tuple[dict[int, bytes], int]:
        """Return values by index into `keys`, and how many are damaged; OSError: it is gone."""
        firsts = as_numbers(b"".join(key[:FIRST] for key in keys))
        places = np.minimum(np.searchsorted(self.firsts, firsts), self.count - 1)
        values: dict[int, bytes] = {}
        here = np.flatnonzero(self.firsts[places] == firsts).tolist()
        if here:
            with open_regular(self.path) as file:
                for i in here:
                    row = read_exactly(file, self.size, self.begin + int(places[i]) * self.size)
                    rest, check, value = row[: KEY - FIRST], row[KEY - FIRST : REST], row[REST:]
                    if rest == keys[i][FIRST:] and check == checksum(keys[i], value):
                        values[i] = value
        return values, len(here) - len(values)

    def read(self) -> np.ndarray:
        """Read the rows, uint8 (rows, size)."""
        with open_regular(self.path) as file:
            content = read_exactly(file, self.count * self.size, self.begin)
        return np.frombuffer(content, np.uint8).reshape(self.count, self.size)


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


def read_exactly(file: int, size: int, place: int) -> bytes:
    """Read `size` bytes from `place` on; OSError where there are not so many."""
    if len(content := os.pread(file, size, place)) < size:
        raise OSError("the file ends early")
    return content


def as_numbers(firsts: bytes) -> np.ndarray:
    """Return beginnings of keys in a row as numbers in the order of the bytes, uint64 (N,)."""
    return np.frombuffer(firsts, BIG_ENDIAN).astype(np.uint64)


def checksum(key: bytes, value: bytes) -> bytes:
    """Return the checksum of a row: the first bytes of the SHA-256 of its key and value."""
    return hashlib.sha256(key + value).digest()[:CHECK]


def write_values(folder: Path, values: Mapping[bytes, bytes]) -> list[Path]:
    """Write values by key, a segment for each size of a value; the files."""
    by_width: dict[int, list[bytes]] = {}
    for key, value in values.items():
        by_width.setdefault(len(value), []).append(key)
    paths = []
    for width, keys in by_width.items():
        content = b"".join(key[FIRST:] + checksum(key, values[key]) + values[key] for key in keys)
        rows = np.frombuffer(content, np.uint8).reshape(len(keys), REST + width)
        firsts = as_numbers(b"".join(key[:FIRST] for key in keys))
        paths.append(write_segment(folder, firsts, rows))
    return paths


def merge_segments(folder: Path, paths: Iterable[Path]) -> list[Path]:
    """Write segments with values of one size as one of at most MOST_MERGED bytes, remove those,
    return files. Several processes may do so at once.
    """
    groups: dict[int, list[Segment]] = {}
    for path in paths:
        with contextlib.suppress(OSError, ValueError):
            segment = Segment(path)
            groups.setdefault(segment.size, []).append(segment)
    files = []
    for group in groups.values():
        room, parts = MOST_MERGED, {}
        for segment in group:
            room -= segment.bytes
            if room < 0:
                files.append(segment.path)
                continue
            with contextlib.suppress(OSError):
                parts[segment.path] = segment.firsts, segment.read()
        if len(parts) < 2:
            files += parts
            continue
        new = write_segment(folder, *map(np.concatenate, zip(*parts.values(), strict=True)))
        for path in parts.keys() - {new}:
            with contextlib.suppress(OSError):
                path.unlink()
        files.append(new)
    return files


def small_segments(paths: Iterable[Path]) -> list[Path]:
    """Return those of `paths` that exist and are small enough to be merged."""
    small = []
    for path in paths:
        with contextlib.suppress(OSError):
            if path.stat().st_size < LARGE:
                small.append(path)
    return small


def write_segment(folder: Path, firsts: np.ndarray, rows: np.ndarray) -> Path:
    """Write rows, one of each key; return the file. Of two values of a key the one with the lower
    checksum stays: whoever merges at the same time, nobody removes the one that others dropped.
    """
    order = np.lexsort((as_numbers(rows[:, KEY - FIRST : REST].tobytes()), firsts))
    firsts, chosen = np.unique(firsts[order], return_index=True)
    content = b"".join((
        HEADER.pack(MAGIC, len(firsts), rows.shape[1] - REST),
        firsts.astype(BIG_ENDIAN).tobytes(),
        rows[order[chosen]].tobytes(),
    ))  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f"{UNFINISHED}{os.urandom(8).hex()}"
    path = folder / f"{hashlib.sha256(content).hexdigest()[:32]}.segment"
    try:
        new.write_bytes(content)
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
