"""A content-addressed store of scores: what a model gave a text once is never computed again, whoever asks."""

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from lmtools.errors import UserError

FILE = "scores.sqlite"


def default_directory() -> Path:
    """$LMTOOLS_CACHE, else lmtools in the user's cache directory."""
    base = os.environ.get("LMTOOLS_CACHE")
    return Path(base) if base else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lmtools"


class Cache:
    """Sums of log-probabilities by (model signature, sentence), safe against crashes and several processes.

    With `directory` None nothing is kept.
    """

    def __init__(self, directory, signature: Mapping[str, str]):
        self.prefix = json.dumps(dict(signature), sort_keys=True).encode()
        self.connection = None
        if directory is None:
            return
        path = Path(directory) / FILE
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.connection = sqlite3.connect(path, timeout=60)
            self.connection.execute("PRAGMA journal_mode=WAL")
            self.connection.execute("CREATE TABLE IF NOT EXISTS score (key BLOB PRIMARY KEY, log_prob REAL NOT NULL) WITHOUT ROWID")
        except (OSError, sqlite3.Error) as error:
            raise UserError(f"{path}: cannot be used as a cache ({error}); remove it or give another --cache") from None

    def key(self, sentence) -> bytes:
        """The address of a sentence's score."""
        return hashlib.sha256(self.prefix + repr(sentence).encode()).digest()

    def get(self, sentences: Sequence) -> dict[int, float]:
        """Index into `sentences` -> log-probability, for those that are known."""
        if self.connection is None:
            return {}
        query = "SELECT log_prob FROM score WHERE key = ?"
        rows = ((i, self.connection.execute(query, (self.key(s),)).fetchone()) for i, s in enumerate(sentences))
        return {i: row[0] for i, row in rows if row}

    def put(self, scored: Iterable[tuple[object, float]]) -> None:
        """Keep (sentence, log-probability) pairs."""
        if self.connection is not None:
            with self.connection:
                self.connection.executemany("INSERT OR REPLACE INTO score VALUES (?, ?)", ((self.key(s), v) for s, v in scored))

    def close(self) -> None:
        """Release the file."""
        if self.connection is not None:
            self.connection.close()
