"""A content-addressed store of scores and vectors: what a model gave a text once is never computed
again, whoever asks.

The key is (signature, sentence), not a file: another list, depth or weight costs nothing. A cache
only ever helps: one that cannot be used is given up with one warning, one that cannot be written is
read.
"""

import contextlib
import errno
import hashlib
import json
import os
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lmtools.base.log import say
from lmtools.score.segments import (
    Segment,
    list_segments,
    merge_segments,
    small_segments,
    write_values,
)

EVERY = 1.0  # seconds of work that a crash may lose
MERGED = 8  # small segments of a process that become one
MANY = 32  # segments from which those of earlier runs are merged


def default_directory() -> Path:
    """Return $LMTOOLS_CACHE, else lmtools in the user's cache directory."""
    if base := os.environ.get("LMTOOLS_CACHE"):
        return Path(base)
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lmtools"


def cache_directory(name: str):
    """Return the cache that a user calls `name`: a directory, `default`, or None for `none`."""
    return default_directory() if name == "default" else None if name == "none" else name


class Kind(NamedTuple):
    """Kind of cached values: the name of its directory, the sizes that values may have, and their
    conversion to bytes and back.
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

    With `directory` None nothing is kept. What is put goes to a segment (lmtools.score.segments)
    each second and when the cache is closed. Damaged rows and segments count as unknown, are told
    once and taken away. A directory that cannot be read is given up with one warning: from there on
    nothing is known and nothing kept. One that cannot be written is read on, with one warning too.
    """

    def __init__(self, directory, signature: Mapping[str, str], kind: Kind = SCORES):
        self.kind, self.prefix = kind, json.dumps(dict(signature), sort_keys=True).encode()
        self.fresh: dict[bytes, bytes] = {}  # rows that are in no segment yet
        self.segments: dict[Path, Segment] = {}
        self.own: list[Path] = []  # small segments that this process wrote
        self.broken: set[Path] = set()
        self.writing = True
        self.written, self.folder = time.monotonic(), None
        if directory is not None:
            self.directory = Path(directory)
            name = hashlib.sha256(self.prefix).hexdigest()[:16]
            self.folder = self.directory / kind.name / name

    def key(self, sentence) -> bytes:
        """Return the address of a sentence's value."""
        return hashlib.sha256(self.prefix + repr(sentence).encode()).digest()

    def get(self, sentences: Sequence) -> dict[int, Any]:
        """Return the values that are known, by index into `sentences`."""
        known: dict[int, Any] = {}
        if self.folder is None:
            return known
        keys = [self.key(sentence) for sentence in sentences]
        left = []
        for i, key in enumerate(keys):
            if key in self.fresh:
                known[i] = self.kind.unpack(self.fresh[key])
            else:
                left.append(i)
        with self.on_error("cache given up", self.release):
            for segment in self.refresh():
                if left:
                    here = self.find(segment, [keys[i] for i in left])
                    known |= {left[n]: self.kind.unpack(value) for n, value in here.items()}
                    left = [i for i in left if i not in known]
        return known

    def find(self, segment: Segment, keys: Sequence[bytes]) -> dict[int, bytes]:
        """Return values by index into `keys`; none where the segment is gone or unreadable."""
        with contextlib.suppress(OSError):
            return segment.find(keys)
        return {}

    def refresh(self) -> list[Segment]:
        """Return the segments that are there now; drop those that vanished or do not fit."""
        there = list_segments(self.folder)
        for path in self.segments.keys() - {*there}:
            del self.segments[path]
        for path in there:
            if path not in self.segments and path not in self.broken:
                with contextlib.suppress(OSError):  # merged meanwhile, or not ours to read
                    try:
                        self.segments[path] = Segment(path)
                    except ValueError:
                        self.broken.add(path)
                        continue
                    if not self.kind.fits(self.segments[path].width):
                        del self.segments[path]
                        self.broken.add(path)
        return list(self.segments.values())

    def put(self, valued: Iterable[tuple[object, Any]]) -> None:
        """Keep (sentence, value) pairs."""
        if self.folder is not None and self.writing:
            for sentence, value in valued:
                self.fresh[self.key(sentence)] = self.kind.pack(value)
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
                    " remove the directory if more are found next time",
                    "warning",
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
            say(
                f"warning: {self.directory}: {loss} ({cause}); {remedy(error)}, or give another"
                " --cache",
                "warning",
            )
            give_up()


def remedy(error: Exception) -> str:
    """Return the remedy of an error of the directory, in words."""
    full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return "make room on its disk" if full else "check the path and its permissions"
