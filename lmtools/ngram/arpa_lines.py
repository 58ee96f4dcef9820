"""Lines of ARPA files in any dialect: text before the header, blanks for tabs, a byte-order mark,
line ends of any system, no end mark.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.files import (
    DAMAGED,
    OPENERS,
    count_byte,
    not_as_named,
    not_utf8,
    raw_chunks,
    raw_lines,
    stream_of,
)
from lmtools.ngram.parsing import NewWords, WordTable, parse_lines, parse_section

CHUNK = 1 << 20  # bytes parsed at once
BOM = b"\xef\xbb\xbf"
DATA, END = b"\\data\\", b"\\end\\"
COUNT = re.compile(rb"ngram[ \t]+([0-9]{1,2})[ \t]*=[ \t]*\+?0*([0-9]{1,18})")
DENSEST = 1100  # bytes that a compressed one may stand for (gzip's most is 1032)
BEGINNING = 1 << 16  # bytes in which line ends are looked for
AGAIN = "write the file again"


class ArpaLines:
    """The lines of an ARPA file called `name`; `number` is the first line taken last."""

    def __init__(self, path, name=None):
        self.path, self.name = path, path if name is None else name
        self.number, self.following = 0, 1
        self.end = line_end(path)
        self.chunks, self.left = raw_chunks(path, CHUNK, self.end), b""
        self.whole = True  # the line taken last has its end

    def take(self, most: int) -> bytes:
        """Return the next lines with their ends, 1 to `most`; none at the end of the file."""
        text = self.left or next(self.chunks, b"")
        size, count = len(text), count_byte(text, self.end) + (not text.endswith(self.end))
        if count > most:
            size, count = text.index(self.end) + 1, most
            if most > 1:
                letters = np.frombuffer(text, dtype=np.uint8)
                size = int(np.flatnonzero(letters == self.end[0])[most - 1]) + 1
        taken, self.left = text[:size], text[size:]
        self.number = self.following
        if taken:
            self.following += count
            self.whole = taken.endswith((b"\n", b"\r"))
        return taken

    def split(self, block: bytes) -> list[bytes]:
        return block.removesuffix(self.end).split(self.end)

    def take_filled(self) -> bytes | None:
        """Return the next line that is not blank, without white space around; None at the end."""
        while raw := self.take(1):
            line = raw.removeprefix(BOM if self.number == 1 else b"").strip()
            if line:
                return line
        return None

    def numbered(self, block: bytes) -> list[tuple[int, str]]:
        """Return numbers and text of those lines taken last that are not blank."""
        lines = []
        for number, raw in enumerate(self.split(block), self.number):
            try:
                line = raw.decode().strip("\r\n")
            except UnicodeDecodeError:
                raise not_utf8(self.path, f"{self.name}:{number}") from None
            if line.strip(" \t"):
                lines.append((number, line))
        return lines

    def parse(self, block: bytes, n: int, ids: dict, table: WordTable | None):
        """Return word ids (R, n) and probabilities and back-off weights (2, R), no logs, of those
        lines taken last that are not blank; `table` of the unigrams, when they are known.
        """
        text = block.replace(b"\r\n", b"\n") if b"\r" in block else block
        text = text if text.endswith(b"\n") else text + b"\n"
        if parsed := parse_section(text, n, table or NewWords(ids)):
            return parsed
        return parse_lines(self.name, self.numbered(block), n, ids)

    def refuse(self, cause: str, remedy: str = AGAIN) -> UserError:
        return UserError(f"{self.name}:{self.number}: {cause}; {remedy}")

    def cut_off(self, where: str) -> UserError:
        return UserError(f"{self.name}: ends {where} (cut off?); fetch or write it again")

    def refuse_capitals(self) -> UserError:
        lines = (number for number, raw in raw_lines(self.path) if b"<S>" in raw.split())
        return UserError(
            f"{self.name}:{next(lines, 1)}: <S> and </S> in place of <s> and </s>; write these: sed"
            f" 's,<S>,<s>,g;s,</S>,</s>,g' {self.name} > NEW.arpa"
        )

    def read_header(self) -> list[int]:
        """Read the number of n-grams of each order; UserError for a wrong header."""
        self.skip_to_data()
        sizes: list[int] = []
        most = content_limit(self.path)
        while (line := self.take_filled()) and not line.startswith(b"\\"):
            match, n = COUNT.fullmatch(line), len(sizes) + 1
            if not match or int(match[1]) != n:
                raise self.refuse(f"expected `ngram {n}=` and the number of n-grams")
            sizes.append(int(match[2]))
            if most is not None and sizes[-1] > most // (2 * n + 1) + 1:
                raise self.refuse(
                    f"`ngram {n}={sizes[-1]}`: the file is too small for so many n-grams (damaged"
                    " or cut off)",
                    "fetch or write it again",
                )
        if not sizes:
            raise UserError(f"{self.name}: has no `ngram 1=` after \\data\\; {AGAIN}")
        if line:
            self.left = line + self.end + self.left  # the next one again
            self.following -= 1
        return sizes

    def skip_to_data(self) -> None:
        while raw := self.take(1):
            if raw.removeprefix(BOM if self.number == 1 else b"").strip() == DATA:
                return
        raise not_as_named(self.path) or UserError(
            f"{self.name}: not an ARPA file: it has no line \\data\\; check that it is the right"
            " file, or fetch it again"
        )

    def expect_section(self, n: int, sizes: Sequence[int]) -> None:
        """Take the line that begins the section of order `n`; UserError where another comes."""
        line = self.take_filled()
        if line is None:
            raise self.cut_off(f"before \\{n}-grams:")
        if line != f"\\{n}-grams:".encode():
            before = f" after the {sizes[n - 2]} of `ngram {n - 1}=`" if n > 1 else ""
            raise self.refuse(f"expected \\{n}-grams:{before}")

    def expect_end(self, sizes: Sequence[int]) -> None:
        """Take the end mark, or none after a whole last line; UserError for anything else."""
        line = self.take_filled()
        if line is None:
            if not self.whole:
                raise self.cut_off("within a line")
        elif line != END:
            n = len(sizes)
            raise self.refuse(f"expected \\end\\ after the {sizes[-1]} of `ngram {n}=`")


def line_end(path) -> bytes:
    """Return the line end of a file: CR where its beginning has no LF."""
    if not os.path.isfile(path):  # what can be read once only
        return b"\n"
    try:
        with stream_of(path) as stream:
            beginning = stream.read(BEGINNING)
    except (OSError, *DAMAGED):  # which reading will tell
        return b"\n"
    return b"\r" if b"\r" in beginning and b"\n" not in beginning else b"\n"


def content_limit(path) -> int | None:
    """Return the most bytes that a file may hold, roughly if compressed; None for a pipe."""
    if not os.path.isfile(path):
        return None
    return os.path.getsize(path) * (DENSEST if Path(path).suffix in OPENERS else 1)
