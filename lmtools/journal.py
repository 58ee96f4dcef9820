"""What lists are made already, one line an utterance, so that a run that is killed goes on."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lmtools.errors import UserError
from lmtools.files import cannot, raw_lines
from lmtools.formats import jsonl
from lmtools.seal import SEAL, Damaged, add_seal, check_seal, digest
from lmtools.types import EMPTY, NBest


@dataclass(frozen=True)
class JournalEntry:
    """The list of an utterance, without its reference, and what the run notes of it by name: texts
    and numbers.
    """

    nbest: NBest
    notes: Mapping[str, str | float] = field(default_factory=lambda: EMPTY)


class Journal:
    """The entries of one output by one model with one set of options (`signature`), in a file
    beside the output whose name says which: other options have another, and none is lost.

    A line that was cut by a kill, or damaged since, counts as not written.
    """

    def __init__(self, out, signature: Mapping):
        out = Path(os.path.realpath(out))
        self.path = out.with_name(f".{out.name}.{digest(signature)[:16]}.journal")

    def read(self) -> dict[str, JournalEntry]:
        """The last entry of each utterance."""
        entries = {}
        for number, line in raw_lines(self.path) if self.path.exists() else ():
            with contextlib.suppress(Damaged, UserError, ValueError, KeyError, TypeError):
                tree = json.loads(line)
                if SEAL in tree:
                    tree = check_seal(tree, self.path)
                    nbest = jsonl.utterance(tree["list"], f"{self.path}:{number}")
                    entries[nbest.utt] = JournalEntry(nbest, dict(tree["notes"]))
        return entries

    @contextlib.contextmanager
    def appending(self) -> Iterator:
        """A function that adds an entry, which is on its way to the disk when it returns."""
        try:
            mode = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(self.path, mode, 0o666), "rb+", buffering=0) as stream:
                size = stream.seek(0, os.SEEK_END)
                if size and os.pread(stream.fileno(), 1, size - 1) != b"\n":
                    stream.write(b"\n")  # after a line that was cut

                def add(entry: JournalEntry) -> None:
                    tree = {"notes": dict(entry.notes), "list": jsonl.as_tree(entry.nbest)}
                    line = json.dumps(add_seal(tree), ensure_ascii=False) + "\n"
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
