"""A content-addressed store of scores and vectors: what a model gave a text once is never computed
again, whoever asks.

The key is (signature, sentence), not a file: another list, depth or weight costs nothing. A cache
only ever helps: one that cannot be used is given up with one warning.
"""

import contextlib
import hashlib
import json
import os
import sqlite3
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FILE = "scores.sqlite"
LOCKED = 30  # seconds that another process may write
EVERY = 1.0  # seconds of work that a crash may lose
CHECK = 8  # bytes of a row's checksum


def default_directory() -> Path:
    """$LMTOOLS_CACHE, else lmtools in the user's cache directory."""
    if base := os.environ.get("LMTOOLS_CACHE"):
        return Path(base)
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lmtools"


def cache_directory(name: str):
    """Where the cache that a user calls `name` lies: a directory, `default`, or None for `none`."""
    return {"default": default_directory(), "none": None}.get(name, name)


class Kind(NamedTuple):
    """What a cache keeps of a sentence: the table of the database, and values as its bytes and
    back.
    """

    table: str
    pack: Callable[[Any], bytes]
    unpack: Callable[[bytes], Any]


SCORES = Kind(
    "checked_score", struct.Struct("<d").pack, lambda content: struct.unpack("<d", content)[0]
)
VECTORS = Kind(
    "checked_vector",
    lambda value: value.astype("<f4").tobytes(),
    lambda content: np.frombuffer(content, "<f4"),
)


class Cache:
    """Sums of log-probabilities or vectors by (model signature, sentence), safe against crashes and
    several processes.

    With `directory` None nothing is kept. Each row has a checksum of its key and value; a row that
    differs from it counts as unknown and is told once. A file that is damaged, locked for long, not
    to be written or on a full disk is given up with one warning: from there on nothing is known and
    nothing kept. What is put goes to the file each second and when the cache is closed.
    """

    def __init__(self, directory, signature: Mapping[str, str], kind: Kind = SCORES):
        self.kind, self.connection = kind, None
        self.prefix = json.dumps(dict(signature), sort_keys=True).encode()
        self.fresh: dict[bytes, bytes] = {}  # rows that are not in the file yet
        self.written, self.damaged = time.monotonic(), 0
        if directory is not None:
            self.path = Path(directory) / FILE
            with self.given_up_on_error():
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.connection = open_database(self.path, kind.table)

    def key(self, sentence) -> bytes:
        """The address of a sentence's value."""
        return hashlib.sha256(self.prefix + repr(sentence).encode()).digest()

    def get(self, sentences: Sequence) -> dict[int, Any]:
        """Index into `sentences` -> value, for those that are known."""
        found = {}
        if self.connection is not None:
            with self.given_up_on_error():
                for i, sentence in enumerate(sentences):
                    if content := self.content(self.key(sentence)):
                        found[i] = self.kind.unpack(content)
        return found

    def content(self, key: bytes) -> bytes | None:
        """The bytes of the value at `key`, None where there is none or a damaged one."""
        row = self.fresh.get(key)
        if row is None:
            found = self.connection.execute(
                f"SELECT row FROM {self.kind.table} WHERE key = ?", (key,)
            ).fetchone()
            if found is None:
                return None
            row = found[0]
            if not isinstance(row, bytes) or row != add_checksum(key, row[CHECK:]):
                self.damaged += 1
                return None
        return row[CHECK:]

    def put(self, valued: Iterable[tuple[object, Any]]) -> None:
        """Keep (sentence, value) pairs."""
        if self.connection is not None:
            for sentence, value in valued:
                key = self.key(sentence)
                self.fresh[key] = add_checksum(key, self.kind.pack(value))
            if time.monotonic() - self.written > EVERY:
                self.write()

    def write(self) -> None:
        """Have the file hold what was put."""
        if self.connection is not None and self.fresh:
            with self.given_up_on_error(), self.connection:
                self.connection.executemany(
                    f"INSERT OR REPLACE INTO {self.kind.table} VALUES (?, ?)", self.fresh.items()
                )
                self.fresh = {}
        self.written = time.monotonic()

    def close(self) -> None:
        """Write what is left, release the file, and say whether rows were damaged."""
        self.write()
        if self.connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self.connection.close()
            if self.damaged:
                again = "computed again; remove the file if more are found next time"
                print(
                    f"warning: {self.path}: {self.damaged:,} damaged rows, {again}", file=sys.stderr
                )
        self.connection = None

    @contextlib.contextmanager
    def given_up_on_error(self) -> Iterator[None]:
        """Where the file cannot be used, say so and go on without it."""
        try:
            yield
        # ValueError: a message out of a damaged schema
        except (OSError, sqlite3.Error, ValueError, OverflowError, MemoryError) as error:
            print(
                f"warning: {self.path}: cache given up ({error}); {remedy(error)}, or give another"
                " --cache",
                file=sys.stderr,
            )
            if self.connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    self.connection.close()
            self.connection, self.fresh = None, {}


def open_database(path: Path, table: str) -> sqlite3.Connection:
    """The database at `path` with the table; what a damaged or foreign schema says is not carried
    out.
    """
    connection = sqlite3.connect(path, timeout=LOCKED)
    connection.text_factory = bytes  # a damaged row may be text that is none
    for setting in (
        "trusted_schema=OFF",
        "cell_size_check=ON",
        "synchronous=NORMAL",
        "journal_mode=WAL",
    ):
        # a file that is only to be read, or another process that is as far
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute(f"PRAGMA {setting}")
    with connection:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {table} (key BLOB PRIMARY KEY, row BLOB NOT NULL) WITHOUT"
            " ROWID"
        )
    return connection


def add_checksum(key: bytes, content: bytes) -> bytes:
    """A row: the checksum of key and value, and the value."""
    return hashlib.sha256(key + content).digest()[:CHECK] + content


def remedy(error: Exception) -> str:
    """What helps against an error of the file."""
    text = str(error).lower()
    if "locked" in text or "busy" in text:
        return "wait for the other process that writes it"
    if "full" in text or "no space" in text or "quota" in text:
        return "make room on its disk"
    if isinstance(error, OSError) or "readonly" in text or "unable to open" in text:
        return "check the path and its permissions"
    return "remove it"
