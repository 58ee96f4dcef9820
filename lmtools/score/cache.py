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
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
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
TOGETHER = 8  # times LARGE: bytes that are merged at once, so that memory holds a few times as much
WRITTEN = 1 << 20  # bytes of rows that are put in order at once
MOST = 1 << 26  # rows of a segment: more than merging can make
UNFINISHED = ".new-"
DAY = 86400  # seconds: an unfinished file that is older has no writer any more


def default_directory() -> Path:
    """Return $LMTOOLS_CACHE, else lmtools in the user's cache directory."""
    if base := os.environ.get("LMTOOLS_CACHE"):
        return Path(base)
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lmtools"


def cache_directory(name: str):
    """Return the cache that a user calls `name`: a directory, `default`, or None for `none`."""
    return default_directory() if name == "default" else None if name == "none" else name


class Kind(NamedTuple):
    """Kind of cached values: the name of its directory, the sizes that values may have, and
    their conversion to bytes and back.
    """

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
    cache is closed. Damaged rows and segments count as unknown, are told once and taken away.
    """

    def __init__(self, directory, signature: Mapping[str, str], kind: Kind = SCORES):
        self.kind, self.prefix = kind, json.dumps(dict(signature), sort_keys=True).encode()
        self.fresh: dict[bytes, bytes] = {}  # rows that are in no segment yet
        self.segments: dict[Path, Segment] = {}
        self.own: list[Path] = []  # small segments that this process wrote
        self.broken: set[Path] = set()
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
                    here = segment.find([keys[i] for i in left])
                    known |= {left[n]: value for n, value in here.items()}
                    left = [i for i in left if i not in known]
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
                    self.broken.add(path)
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
                new = write_values(self.folder, self.fresh)
                self.fresh = {}
                self.own += small_segments(new)
                if len(self.own) >= MERGED:
                    self.own = small_segments(merge_segments(self.folder, self.own))
        self.written = time.monotonic()

    def close(self) -> None:
        """Write what is left, tidy up, and say whether something was damaged."""
        self.write()
        if self.folder is not None:
            damaged = {path: s.damaged for path, s in self.segments.items() if s.damaged}
            if self.writing:
                with self.on_error("cache read but not tidied", self.stop_writing):
                    self.tidy(damaged)
            if count := sum(damaged.values()) + len(self.broken):
                say(
                    f"warning: {self.folder}: {count:,} damaged rows or files, computed again;"
                    " remove the directory if more are found next time"
                )
        self.release()

    def tidy(self, damaged: Mapping[Path, int]) -> None:
        """Merge small segments where there are many, else own ones; mend the `damaged`."""
        self.refresh()
        small = small_segments(self.segments)
        if len(small) <= MANY:
            small = [path for path in small if path in self.own]
        if damaged or (self.own and len(small) > 1):
            merge_segments(self.folder, {*small, *damaged}, damaged)
        for path in self.broken:
            path.unlink(missing_ok=True)

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
        self.path, self.damaged = path, 0
        with open_regular(path) as file:
            head = os.pread(file, HEADER.size, 0).ljust(HEADER.size)
            magic, self.count, self.width = HEADER.unpack(head)
            self.begin, self.size = HEADER.size + self.count * FIRST, REST + self.width  # of rows
            self.bytes = self.begin + self.count * self.size
            whole = magic == MAGIC and 0 < self.count <= MOST
            if not whole or os.fstat(file).st_size != self.bytes:
                raise ValueError("not a whole segment of a cache")
            firsts = read_exactly(file, self.count * FIRST, HEADER.size)
        self.firsts = np.frombuffer(firsts, BIG_ENDIAN).astype(np.uint64)

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

    def read(self, doubtful: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Read the beginnings of keys (rows,) and the rows, uint8 (rows, size), of a `doubtful`
        segment those alone that are sound.
        """
        with open_regular(self.path) as file:
            content = read_exactly(file, self.count * self.size, self.begin)
        rows = np.frombuffer(content, np.uint8).reshape(self.count, self.size)
        if not doubtful:
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


def read_exactly(file: int, size: int, place: int) -> bytes:
    """Read `size` bytes from `place` on; OSError where there are not so many."""
    if len(content := os.pread(file, size, place)) < size:
        raise OSError("the file ends early")
    return content


def checksum(key: bytes, value: bytes) -> bytes:
    """Return the checksum of a row: the first bytes of the SHA-256 of its key and value."""
    return hashlib.sha256(key + value).digest()[:CHECK]


def is_sound(key: bytes, row: bytes) -> bool:
    """Return whether the checksum of a row is that of its key and value."""
    return row[KEY - FIRST : REST] == checksum(key, row[REST:])


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
    """Write the rows of some segments, those with values of one size together, as fewer, of about
    TOGETHER * LARGE bytes at most, then remove those; the new files. Each row of the `doubtful` is
    checked. Another process may do the same: what it wrote holds what it removed.
    """
    segments, files = [], []
    for path in paths:
        with contextlib.suppress(OSError, ValueError):
            segments.append(Segment(path))
    groups: list[list[Segment]] = []
    for segment in sorted(segments, key=lambda member: (member.size, member.bytes)):
        total = segment.bytes + sum(member.bytes for member in groups[-1]) if groups else 0
        if not groups or segment.size != groups[-1][0].size or total > TOGETHER * LARGE:
            groups.append([])
        groups[-1].append(segment)
    for group in groups:
        if len(group) == 1 and group[0].path not in doubtful:
            files.append(group[0].path)
            continue
        parts: dict[Path, tuple[np.ndarray, np.ndarray]] = {}
        for segment in group:
            with contextlib.suppress(OSError):
                parts[segment.path] = segment.read(segment.path in doubtful)
        if not parts:
            continue
        read = {*parts}
        firsts, rows = map(np.concatenate, zip(*parts.values(), strict=True))
        parts.clear()
        new = [write_segment(folder, firsts, rows)] if len(firsts) else []
        for path in read - {*new}:
            with contextlib.suppress(OSError):
                path.unlink()
        files += new
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
    steps = (rows[chosen[n : n + step]].tobytes() for n in range(0, len(chosen), step))
    try:
        with open(new, "xb") as stream:
            for part in (head, firsts.astype(BIG_ENDIAN).tobytes(), *steps):
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
