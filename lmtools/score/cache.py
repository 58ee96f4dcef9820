"""A content-addressed store of scores and vectors: what a model gave a text once is never computed again, whoever asks."""

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lmtools.errors import UserError

FILE = "scores.sqlite"


def default_directory() -> Path:
    """$LMTOOLS_CACHE, else lmtools in the user's cache directory."""
    base = os.environ.get("LMTOOLS_CACHE")
    return Path(base) if base else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lmtools"


def cache_directory(name: str):
    """Where the cache that a user calls `name` lies: a directory, `default`, or None for `none`."""
    return {"default": default_directory(), "none": None}.get(name, name)


class Kind(NamedTuple):
    """What a cache keeps of a sentence: table and column of the database, and values as the database has them and back."""

    table: str
    column: str
    packed: Callable
    unpacked: Callable


SCORES = Kind("score", "log_prob REAL", float, float)
VECTORS = Kind("vector", "value BLOB", lambda value: value.astype("<f4").tobytes(), lambda blob: np.frombuffer(blob, "<f4"))


class Cache:
    """Sums of log-probabilities or vectors by (model signature, sentence), safe against crashes and several processes.

    With `directory` None nothing is kept.
    """

    def __init__(self, directory, signature: Mapping[str, str], kind: Kind = SCORES):
        self.kind = kind
        self.prefix = json.dumps(dict(signature), sort_keys=True).encode()
        self.connection = None
        if directory is None:
            return
        path = Path(directory) / FILE
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.connection = sqlite3.connect(path, timeout=60)
            self.connection.execute("PRAGMA journal_mode=WAL")
            self.connection.execute(f"CREATE TABLE IF NOT EXISTS {kind.table} (key BLOB PRIMARY KEY, {kind.column} NOT NULL) WITHOUT ROWID")
        except (OSError, sqlite3.Error) as error:
            raise UserError(f"{path}: cannot be used as a cache ({error}); remove it or give another --cache") from None

    def key(self, sentence) -> bytes:
        """The address of a sentence's score."""
        return hashlib.sha256(self.prefix + repr(sentence).encode()).digest()

    def get(self, sentences: Sequence) -> dict[int, Any]:
        """Index into `sentences` -> value, for those that are known."""
        if self.connection is None:
            return {}
        query = f"SELECT {self.kind.column.split()[0]} FROM {self.kind.table} WHERE key = ?"
        rows = ((i, self.connection.execute(query, (self.key(s),)).fetchone()) for i, s in enumerate(sentences))
        return {i: self.kind.unpacked(row[0]) for i, row in rows if row}

    def put(self, valued: Iterable[tuple[object, Any]]) -> None:
        """Keep (sentence, value) pairs."""
        if self.connection is not None:
            rows = ((self.key(sentence), self.kind.packed(value)) for sentence, value in valued)
            with self.connection:
                self.connection.executemany(f"INSERT OR REPLACE INTO {self.kind.table} VALUES (?, ?)", rows)

    def close(self) -> None:
        """Release the file."""
        if self.connection is not None:
            self.connection.close()
