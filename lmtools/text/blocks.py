"""Text in blocks of whole lines, as lmtools.workers gives them to processes."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lmtools.errors import UserError
from lmtools.files import DAMAGED, cannot, longest_line, stream_of, too_long
from lmtools.text.foreign import refuse_foreign, refuse_nul

NEWLINE = b"\n"
SIZE = 1 << 20  # bytes of a block, at least; a line stays whole


class TextBlock(NamedTuple):
    """Whole lines of a file, at least one: the number of the first (from 1), and the bytes."""

    path: str
    first: int
    content: bytes

    def text(self) -> str:
        """The lines as they stand, without byte-order mark; UserError for one that is not UTF-8."""
        try:
            return self.content.decode("utf-8-sig" if self.first == 1 else "utf-8")
        except UnicodeDecodeError as error:
            line = self.first + error.object.count(b"\n", 0, error.start)
            raise UserError(f"{self.path}:{line}: not UTF-8; convert it with iconv") from None

    def lines(self) -> list[str]:
        """The lines without their ends, as lmtools.files.read_lines: LF, or CR and LF, ends one."""
        text = self.text()
        lines = text.removesuffix("\n").split("\n")
        return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def read_blocks(paths: Sequence, nul: bool = False) -> Iterator[TextBlock]:
    """The blocks of UTF-8 texts (.gz, .xz, .bz2, `-`: standard input), one after the other, lazily.

    UserError for what is no text, and unless `nul` for a NUL byte anywhere.
    """
    most = longest_line()
    for path in paths:
        number = 1
        try:
            with stream_of(path) as whole:
                while content := whole.read(min(SIZE, most)):
                    content += whole.readline(most + 1)
                    if len(content) - content.rfind(NEWLINE, 0, -1) - 1 > most:
                        raise too_long(f"{path}:{number + content.count(NEWLINE, 0, -1)}", most)
                    if number == 1:
                        refuse_foreign(content, path)
                    if not nul:
                        refuse_nul(content, path, number)
                    yield TextBlock(str(path), number, content)
                    number += content.count(NEWLINE)
        except DAMAGED as error:
            where = f"{path}:{number}: damaged archive from there on"
            raise UserError(f"{where} ({error}); fetch or write it again") from None
        except OSError as error:
            raise cannot("read", path, error) from None


def read_text(path, nul: bool = False) -> Iterator[tuple[int, str]]:
    """Pairs (line number from 1, line without its end), as files.read_lines and read_blocks."""
    for block in read_blocks([path], nul):
        yield from enumerate(block.lines(), block.first)


def read_again(paths: Sequence) -> Iterator[str]:
    """The lines of those texts that can be read more than once: of files, not of pipes."""
    for path in paths:
        if Path(path).is_file():
            yield from (line for _, line in read_text(path))
