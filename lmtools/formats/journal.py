"""Journal of the lists that are made already, one line an utterance, so that a run that is killed
goes on.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import cannot, raw_lines
from lmtools.base.seal import SEAL, digest
from lmtools.formats import jsonl
from lmtools.types import EMPTY, NBest

# what a line is that no run of ours wrote
UNREADABLE = (UserError, ValueError, KeyError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True)
class JournalEntry:
    """The list of an utterance, without reference, and what the run notes by name."""

    nbest: NBest
    notes: Mapping[str, str | float] = field(default_factory=lambda: EMPTY)


class Journal:
    """The entries of one output by one model and options (`signature`), in a file beside the
    output. A line that was cut, damaged, or is another's counts as not written.
    """

    def __init__(self, out, signature: Mapping):
        out, self.subject = Path(os.path.realpath(out)), digest(signature)
        self.path = out.with_name(f".{out.name}.{self.subject[:16]}.journal")

    def seal(self, tree: Mapping) -> str:
        """Return the digest of what an entry says, and of what it is an entry of."""
        return digest({**tree, "of": self.subject})

    def read(self) -> dict[str, JournalEntry]:
        entries = {}
        for number, line in raw_lines(self.path) if self.path.is_file() else ():
            with contextlib.suppress(*UNREADABLE):
                tree = json.loads(line)
                if tree.pop(SEAL) == self.seal(tree):
                    nbest = jsonl.utterance(tree["list"], f"{self.path}:{number}")
                    entries[nbest.utt] = JournalEntry(nbest, dict(tree["notes"]))
        return entries

    @contextlib.contextmanager
    def appending(self) -> Iterator:
        """Yield a function that adds an entry, which is on its way to the disk when it returns."""
        try:
            mode = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(self.path, mode, 0o666), "rb+", buffering=0) as stream:
                size = stream.seek(0, os.SEEK_END)
                if size and os.pread(stream.fileno(), 1, size - 1) != b"\n":
                    stream.write(b"\n")  # after a line that was cut

                def add(entry: JournalEntry) -> None:
                    tree = {"notes": dict(entry.notes), "list": jsonl.as_tree(entry.nbest)}
                    tree = {SEAL: self.seal(tree), **tree}
                    line = json.dumps(tree, ensure_ascii=False) + "\n"
                    write_all(stream, line.encode("utf-8", "replace"), self.path)

                try:
                    yield add
                finally:
                    if not stream.seek(0, os.SEEK_END):
                        self.path.unlink(missing_ok=True)
        except OSError as error:
            if error.filename != str(self.path):
                raise
            raise cannot("write", self.path, error) from None


def write_all(stream, data: bytes, path: Path) -> None:
    """Write to an unbuffered stream; UserError where it cannot take all."""
    try:
        while data:
            data = data[stream.write(data) :]
    except OSError as error:
        raise cannot("write", path, error) from None
