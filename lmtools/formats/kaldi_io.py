"""Byte streams of files, pipes and shell commands that know the line and byte they stand at.

`open_file` opens files and nothing else, whatever their names. Commands are run by `open_output`
and `open_input`, which are for what the user typed, and for lines of script files only where the
settings of the call (lmtools.base.context) allow it.
"""

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from lmtools.base.context import current
from lmtools.base.errors import UserError
from lmtools.base.files import ENCODING, OPENERS, longest_line, not_utf8, read_errors, too_long
from lmtools.formats.checks import identifier

BLANK, KEY = re.compile(rb"[ \t\n\v\f\r]*"), re.compile(rb"[^ \t\n\v\f\r]*")
LONGEST_KEY = 1 << 16  # bytes; a longer one means that this is no archive
BLOCK = 1 << 24  # bytes that a broken length may claim at a time


class Stream:
    """The bytes of a file, pipe or command; where reading stands: line `number`, byte `offset`."""

    def __init__(self, raw, name: str, start: int = 0):
        self.raw, self.name, self.start, self.base = raw, name, start, start
        self.buffer, self.head, self.number, self.most = b"", 0, 1, longest_line()
        if start == 0 and self.peek(3) == b"\xef\xbb\xbf":  # a byte-order mark
            self.head = 3

    @property
    def offset(self) -> int:
        return self.base + self.head

    def place(self) -> str:
        """Return `path:line`, or the byte where the lines before are not known."""
        return f"{self.name}: byte {self.offset}" if self.start else f"{self.name}:{self.number}"

    def more(self, size: int = 0) -> bool:
        """Read the next block into the buffer; return whether there was one."""
        with read_errors(self.name):
            block = self.raw.read1(min(max(size, 1 << 16), BLOCK))
        self.buffer, self.base, self.head = self.buffer[self.head :] + block, self.offset, 0
        return bool(block)

    def peek(self, size: int = 1) -> bytes:
        """Return the next `size` bytes, fewer at the end, without reading them."""
        while len(self.buffer) - self.head < size and self.more():
            pass
        return self.buffer[self.head : self.head + size]

    def read(self, size: int) -> bytes:
        """Read the next `size` bytes; UserError if there are fewer."""
        where, pieces, least = f"{self.name}: byte {self.offset}", [], size - self.most
        while size > 0 and (self.head < len(self.buffer) or self.more(size)):
            pieces.append(self.buffer[self.head : self.head + size])
            self.head += len(pieces[-1])
            size -= len(pieces[-1])
            if size < least:
                raise too_long(where, self.most, "an entry")
        if size > 0:
            raise UserError(
                f"{self.name}: byte {self.offset}: ends inside an entry; write or fetch it again"
            )
        return b"".join(pieces)

    def readline(self) -> str:
        """Read the rest of the line without its end; UserError if it is not UTF-8."""
        where, pieces, left = self.place(), [], self.most
        while self.head < len(self.buffer) or self.more():
            end = self.buffer.find(b"\n", self.head)
            stop = len(self.buffer) if end < 0 else end
            pieces.append(self.buffer[self.head : stop])
            left -= stop - self.head
            if left < 0:
                raise too_long(where, self.most)
            self.head = stop if end < 0 else stop + 1
            if end >= 0:
                self.number += 1
                break
        return self.decoded(b"".join(pieces).removesuffix(b"\r"), where)

    def skip_blanks(self) -> bytes:
        """Pass over white space; the last byte of it."""
        last = b""
        while self.head < len(self.buffer) or self.more():
            end = BLANK.match(self.buffer, self.head).end()
            last = self.buffer[end - 1 : end] if end > self.head else last
            self.number += self.buffer.count(b"\n", self.head, end)
            self.head = end
            if end < len(self.buffer):
                break
        return last

    def key(self) -> str | None:
        """Read the next key, with one space or tab after it; None at the end."""
        before = self.skip_blanks()
        while (
            (end := KEY.match(self.buffer, self.head).end()) == len(self.buffer)
            and end - self.head < LONGEST_KEY
            and self.more()
        ):
            pass
        key = self.buffer[self.head : end]
        if not key:
            return None
        if before not in (b"", b"\n") or len(key) >= LONGEST_KEY:
            raise UserError(
                f"{self.place()}: no key at the start of the line; write `key value`, or give a"
                " Kaldi archive"
            )
        self.head = end
        if self.peek() in (b" ", b"\t"):
            self.head += 1
        return identifier(self.decoded(key, self.place()), self.place())

    def decoded(self, data: bytes, where: str) -> str:
        """Decode UTF-8 bytes at `where`."""
        try:
            return data.decode()
        except UnicodeDecodeError:
            remedy = f"{ENCODING}, or give a table of the right kind"
            raise not_utf8(self.name, where, remedy) from None


@contextlib.contextmanager
def open_file(path, start: int = 0) -> Iterator[Stream]:
    """Open the file `path` from byte `start`."""
    try:
        with read_errors(path):
            file = OPENERS.get(Path(path).suffix, open)(path, "rb")
            if start:
                file.seek(start)
    except ValueError:
        raise UserError(f"{str(path)!a}: no name of a file; correct it") from None
    with file:
        yield Stream(file, str(path), start)


@contextlib.contextmanager
def open_standard_input() -> Iterator[Stream]:
    yield Stream(sys.stdin.buffer, "-")


def permit_command(command: str, where: str) -> str:
    """Return a command that data asks for; UserError unless the user allowed such commands."""
    if not current().allow_commands:
        raise UserError(
            f"{where}: wants to run the command {command[:80]!a}; add --allow-commands if you trust"
            " whoever wrote the file"
        )
    return command


@contextlib.contextmanager
def open_output(command: str) -> Iterator[Stream]:
    """Open the output of a shell command; UserError if it fails."""
    process = start_command(command, stdout=subprocess.PIPE)
    try:
        yield Stream(process.stdout, f"{command} |")
        while process.stdout.read(1 << 16):  # a closed pipe would look like a failure
            pass
    except BaseException:
        process.terminate()
        raise
    finally:
        process.stdout.close()
        status = process.wait()
    check_status(command, status)


def start_command(command: str, **options) -> subprocess.Popen:
    """Start a shell with `command`."""
    try:
        return subprocess.Popen(command, shell=True, **options)
    except (OSError, ValueError) as error:
        raise UserError(f"{command!a}: cannot run it ({error}); correct the command") from None


def check_status(command: str, status: int) -> None:
    """Raise UserError if a command failed."""
    if status:
        raise UserError(
            f"{command}: the command failed with status {status}; run it by itself and see what it"
            " says"
        )


@contextlib.contextmanager
def open_input(command: str) -> Iterator:
    """Open a text stream that writes into a shell command; UserError if it fails."""
    process = start_command(command, stdin=subprocess.PIPE, text=True, encoding="utf-8")
    try:
        with process.stdin:
            yield process.stdin
    except BrokenPipeError:
        pass  # its status says why
    except BaseException:
        process.terminate()
        raise
    finally:
        status = process.wait()
    check_status(command, status)
