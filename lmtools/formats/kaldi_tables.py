"""Kaldi's tables without Kaldi: archives and script files, text and binary, entry by entry.

A table is named as Kaldi names it: `ark:F`, `ark,t:F`, `ark:-`, `ark:gunzip -c F |`, `scp:F` (lines
`key file`, `key file:offset` or `key command |`), and for writing `ark:| gzip -c > F`; or by a
plain path, which is an archive, or a script file if it ends in .scp. Files that end in .gz, .xz or
.bz2 are decompressed. Archives are written, as text, which Kaldi reads as it reads binary data; the
options after `ark,` are accepted: a key that cannot be read is always refused. Paths in script
files are relative to the working directory, and may be any regular files.

The shell runs commands of specifiers that the user typed (`registry.parse_specifier`), and those
in lines of script files only with the option --allow-commands. Every other name is that of a file,
whatever it looks like: a plain path, a path in a script file, a name that a directory holds.
"""

import contextlib
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats import kaldi_io
from lmtools.formats.checks import identifier, number
from lmtools.formats.kaldi_io import Stream
from lmtools.formats.registry import Specifier, parse_specifier

OFFSET = re.compile(r"(.+):([0-9]{1,18})")
BINARY = b"\0B"
OPENFST = struct.pack("<i", 2125659606)  # binary lattices start with OpenFst's number, not with \0B
NUMBERED = np.dtype([("size", "i1"), ("value", "<i4")])  # an int as Kaldi's basic types are written


@dataclass(frozen=True)
class TableEntry:
    """One entry of a table: its key, and the stream at its value, which must be read before the
    next one. `binary`: Kaldi's mark was there; `where` is its place.
    """

    key: str
    where: str
    binary: bool
    stream: Stream


def read_entries(path) -> Iterator[TableEntry]:
    """Read the entries of a table one by one; UserError for what cannot be read."""
    spec = parse_specifier(path)
    kind = spec.kind if spec else Path(path).suffix.removeprefix(".")
    with open_table(path, spec) as stream:
        if kind == "scp":
            yield from read_script(stream)
        else:
            while (key := stream.key()) is not None:
                yield read_entry(key, stream)


def open_table(path, spec: Specifier | None) -> contextlib.AbstractContextManager[Stream]:
    """Open the stream that a table is read from: a file, standard input or a command's output."""
    if spec and spec.place.endswith("|"):
        return kaldi_io.open_output(spec.place[:-1].strip())
    place = spec.place if spec else path
    # a Path is never equal to "-"
    return kaldi_io.open_standard_input() if place == "-" else kaldi_io.open_file(place)


def read_script(script: Stream) -> Iterator[TableEntry]:
    while (key := script.key()) is not None:
        where = script.place()
        target = script.readline().strip()
        if not target:
            raise UserError(
                f"{where}: no file after key {key!r}; write `key file`, `key file:offset` or `key"
                " command |`"
            )
        with open_value(target, where) as stream:
            yield read_entry(key, stream)


def open_value(target: str, where: str) -> contextlib.AbstractContextManager[Stream]:
    """Open what a line of a script file names: a regular file, or a command if allowed."""
    if target.endswith("|"):
        return kaldi_io.open_output(kaldi_io.permit_command(target[:-1].strip(), where))
    match = OFFSET.fullmatch(target)
    path, start = (Path(match[1]), int(match[2])) if match else (Path(target), 0)
    if path.exists() and not path.is_file():
        raise UserError(f"{where}: {target!a} is no regular file; correct the line")
    return kaldi_io.open_file(path, start)


def read_entry(key: str, stream: Stream) -> TableEntry:
    """Read the entry at whose value `stream` stands."""
    at, offset = stream.place(), stream.offset
    first = stream.peek()  # one byte: more might not have been written yet
    binary = first == BINARY[:1] and stream.peek(2) == BINARY
    if binary:
        stream.read(2)
    if binary or (first == OPENFST[:1] and stream.peek(4) == OPENFST):
        at = f"{stream.name}: key {key!r} at byte {offset}"
    return TableEntry(key, at, binary, stream)


def read_line(entry: TableEntry) -> str:
    if entry.binary:
        raise UserError(
            f"{entry.where}: binary data where text is expected; give a table of the right kind"
        )
    return entry.stream.readline()


def read_block(entry: TableEntry) -> Iterator[tuple[str, str]]:
    """Read (`path:line`, line) of a text entry up to the empty line that ends it."""
    if rest := read_line(entry).strip():
        raise UserError(
            f"{entry.where}: {rest[:40]!r} after the key {entry.key!r}; the key of such an entry"
            " has a line of its own"
        )
    while entry.stream.peek():
        where = entry.stream.place()
        text = entry.stream.readline()
        if not text.strip():
            return
        yield where, text


def read_values(path, kind: str) -> Iterator[tuple[str, object, str]]:
    """Yield (key, value, where) of a table of `tokens` (a text), `float` or `ints` (a list)."""
    for item in read_entries(path):
        yield item.key, KINDS[kind](item), item.where


def read_symbols(path) -> dict[int, str]:
    """Read the words of a words.txt (lines `word id`) by their ids."""
    words: dict[int, str] = {}
    for row, text in read_lines(path):
        fields = text.split()
        if fields and (len(fields) != 2 or not re.fullmatch("[0-9]{1,18}", fields[1], re.ASCII)):
            raise UserError(f"{path}:{row}: {text[:40]!r} is not `word id`; give Kaldi's words.txt")
        if fields:
            words[int(fields[1])] = fields[0]
    return words


def read_tokens(entry: TableEntry) -> str:
    """Read the tokens of an entry, single-spaced; Kaldi has text in binary archives too."""
    return " ".join(read_line(entry).split())


def read_float(entry: TableEntry) -> float:
    if not entry.binary:
        return number(read_line(entry).strip(), entry.where, f"the value of {entry.key!r}")
    size = entry.stream.read(1)[0]
    if size not in (4, 8):
        raise UserError(f"{entry.where}: not a binary number; give a table of numbers")
    value = struct.unpack("<f" if size == 4 else "<d", entry.stream.read(size))[0]
    return number(repr(value), entry.where, f"the value of {entry.key!r}")


def read_integers(entry: TableEntry) -> list[int]:
    if entry.binary:
        count = int(read_sized(entry, 1)[0])
        if count < 0:
            raise UserError(f"{entry.where}: claims {count} integers; write or fetch it again")
        return read_sized(entry, count).tolist()
    words = read_line(entry).split()
    if wrong := [word for word in words if not re.fullmatch(r"[-+]?[0-9]{1,18}", word, re.ASCII)]:
        raise UserError(
            f"{entry.where}: {wrong[0][:40]!r} is not an integer; give a table of integers"
        )
    return [int(word) for word in words]


def read_sized(entry: TableEntry, count: int) -> np.ndarray:
    """Read the next `count` integers of a binary entry, each behind a byte that says its size."""
    rows = np.frombuffer(entry.stream.read(count * NUMBERED.itemsize), NUMBERED)
    if (rows["size"] != 4).any():
        raise UserError(
            f"{entry.where}: not a binary list of 32-bit integers; give a table of integers"
        )
    return rows["value"]


KINDS = {"tokens": read_tokens, "float": read_float, "ints": read_integers}


class Writer:
    """A table being written, as text. A file appears when the block ends well; standard output and
    commands get each entry at once.
    """

    def __init__(self, path):
        spec = parse_specifier(path)
        self.place = spec.place if spec else path
        self.command = self.place[1:].strip() if spec and self.place.startswith("|") else None
        if (spec.kind if spec else Path(path).suffix) in ("scp", ".scp") or (
            spec and "scp" in spec.options
        ):
            raise UserError(f"{path}: tables are written as archives; give ark:F")

    def __enter__(self):
        self.stack = (
            atomic_text(self.place) if self.command is None else kaldi_io.open_input(self.command)
        )
        self.out = self.stack.__enter__()
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def write(self, key: str, value: str) -> None:
        """Write one entry, with a line's end where `value` has none."""
        end = "" if value.endswith("\n") else "\n"
        self.out.write(f"{identifier(key, str(self.place))} {value}{end}")
        if self.place == "-" or self.command is not None:
            self.out.flush()
