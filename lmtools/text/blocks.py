"""Text in blocks of whole lines, as lmtools.base.workers gives them to processes; and content that
is given as text and is none: N-best lists, models, archives, markup.
"""

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lmtools.base.errors import UserError
from lmtools.base.files import (
    BINARY,
    DAMAGED,
    OPENERS,
    UTF16,
    cannot,
    compression_error,
    in_utf16,
    longest_line,
    not_utf8,
    refuse_cr,
    stream_of,
    too_long,
)

HEAD = 1 << 16  # bytes that are looked at

PLAIN = "give text, one sentence a line"
SOURCE = "give the text that it is made of"
LISTS = "take its hypotheses with lmtools convert --to kaldi-text, or give text"
PATHS = "take texts with lmtools lattice rescore --text"
NEWLINE = b"\n"
SIZE = 1 << 20  # bytes of a block, at least; a line stays whole
PAIRS = 10_000  # lines of a block of two texts


class Foreign(NamedTuple):
    """Kind of content that is no text: the mark at its beginning, its name, and the remedy."""

    mark: re.Pattern
    what: str
    remedy: str


# What is neither text nor lists nor lattices
ARTIFACTS = tuple(
    Foreign(re.compile(mark, re.DOTALL), what, remedy)
    for mark, what, remedy in (
        (
            rb"(?:[^\n]*\n){0,20}?\\data\\\s*\n\s*ngram\s+1\s*=",
            "an ARPA language model, which goes to --lm",
            SOURCE,
        ),
        (
            rb"lmtools-corpus-(?:index-)?[0-9]+\n",
            "a binarised corpus, which goes to lmtools train",
            SOURCE,
        ),
        (rb"# lmtools-scores", "a file of scores, which goes to --scores", PLAIN),
        *((mark, what, PLAIN) for mark, what in BINARY.items()),
    )
)
# What may be lists or lattices, or else markup
SHAPES = tuple(
    Foreign(re.compile(mark), what, remedy)
    for mark, what, remedy in (
        (rb"NBestList", "SRILM's N-best lists", LISTS),
        (rb"[\[\s]*\{\s*\"[^\"\n]*\"\s*:", "JSON, such as N-best lists", LISTS),
        (rb"(?:\s*\[)+\s*\"(?:[^\"\\\n]|\\.)*\"\s*[,\]]", "a JSON list of texts",
         "write one a line: jq -r '.[]' F > NEW"),
        (rb"(?i)\s*<(?:\?xml\b|!doctype\b|html\b"
         rb"|[a-z]\w*(?:\s+[\w:-]+\s*=\s*[\"'][^\"'\n]*[\"'])+\s*/?>)",
         "XML or HTML", "take the text out of it"),
        (rb"\S+ \|\|\| [^\n]* \|\|\| ", "Moses's or Marian's N-best lists", LISTS),
        (rb"(?:#[^\n]*\n)*VERSION=\d", "a lattice (HTK SLF)", PATHS),
        (rb"\S+[ \t]*\n\d+[ \t]+\d+[ \t]+\S+[ \t]+[-\d.]+,[-\d.]+", "Kaldi lattices", PATHS),
        (rb"\(\(\(\s*['\"]", "lattices (PLF)", PATHS),
        (rb"\S+ \0[B4]", "a Kaldi archive (binary)", PLAIN),
        (rb"\S+[ \t]+\[\s*[-+]?\d+\.\d", "a Kaldi archive of vectors or matrices", PLAIN),
        (rb"(?:\S+[ \t]+[-+]?\d+\.\d+(?:[eE][-+]?\d+)?(?:[ \t]+\d+)?[ \t]*\r?\n){5}",
        "a file of scores, a number a line", PLAIN),
    )
)  # fmt: skip


def identify(head: bytes, kinds: Iterable[Foreign]) -> Foreign | None:
    """Return the first of `kinds` that begins like `head` (decompressed); None where in doubt."""
    head = head[:HEAD].removeprefix(b"\xef\xbb\xbf")
    return next((kind for kind in kinds if kind.mark.match(head)), None)


def refuse_foreign(head: bytes, path) -> None:
    """Raise UserError if a file that begins with `head` (decompressed) is clearly no text."""
    if kind := identify(head, (*ARTIFACTS, *SHAPES)):
        raise UserError(f"{path}:1: is no text but {kind.what}; {kind.remedy}")
    if error := compression_error(path, head):
        raise error
    if UTF16.match(head):
        raise in_utf16(path)


def refuse_nul(block: bytes, path, first: int) -> None:
    """Raise UserError with the line of the first NUL byte; the block begins at line `first`."""
    if (place := block.find(b"\0")) >= 0:
        line = first + block.count(b"\n", 0, place)
        raise UserError(
            f"{path}:{line}: holds a NUL byte, as binary data does; give text, or remove it"
        )


class TextBlock(NamedTuple):
    """Whole lines of a file: the number of the first, and the bytes. Lines are numbered from 1 at
    byte `start`.
    """

    path: str
    first: int
    content: bytes
    start: int = 0

    def blocks(self) -> Iterator["TextBlock"]:
        yield self

    def text(self) -> str:
        """Return the lines as they stand, without byte-order mark; UserError if not UTF-8."""
        leading = self.first == 1 and self.start == 0
        try:
            return self.content.decode("utf-8-sig" if leading else "utf-8")
        except UnicodeDecodeError as error:
            line = self.first + error.object.count(NEWLINE, 0, error.start)
            line += count_lines(self.path, self.start)
            raise not_utf8(self.path, f"{self.path}:{line}") from None

    def lines(self) -> list[str]:
        """Return the lines without their ends (LF, or CR and LF)."""
        text = self.text()
        lines = text.removesuffix("\n").split("\n")
        return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


class TextPart(NamedTuple):
    """The lines of a text (.gz, .xz, .bz2, `-`: standard input) that begin in its bytes from
    `begin` to before `end` (None: its end).

    Who works on it reads it, so that only names go to other processes and machines.
    """

    path: str
    begin: int = 0
    end: int | None = None

    def blocks(self, nul: bool = False) -> Iterator[TextBlock]:
        """Yield its blocks, lazily; UserError for what is no text, NUL bytes unless `nul`."""
        number, most = 1, longest_line()
        try:
            with stream_of(self.path) as stream:
                at = start = skip_line(stream, self.begin, most) if self.begin else 0
                while self.end is None or at < self.end:
                    size = min(SIZE, most) if self.end is None else min(SIZE, most, self.end - at)
                    if not (content := stream.read(size)):
                        return
                    if not content.endswith(NEWLINE):
                        content += stream.readline(most + 1)
                    if at == 0:
                        refuse_cr(content, self.path)
                    if len(content) - content.rfind(NEWLINE, 0, -1) - 1 > most:
                        line = number + content.count(NEWLINE, 0, -1)
                        raise too_long(f"{self.path}:{line + count_lines(self.path, start)}", most)
                    if at == 0:
                        refuse_foreign(content, self.path)
                    if not nul and b"\0" in content:
                        refuse_nul(content, self.path, number + count_lines(self.path, start))
                    yield TextBlock(self.path, number, content, start)
                    number += content.count(NEWLINE)
                    at += len(content)
        except DAMAGED as error:
            where = f"{self.path}:{number}: damaged archive from there on"
            raise UserError(f"{where} ({error}); fetch or write it again") from None
        except OSError as error:
            raise cannot("read", self.path, error) from None


def skip_line(stream, begin: int, most: int) -> int:
    stream.seek(begin - 1)
    while (rest := stream.readline(most + 1)) and not rest.endswith(NEWLINE):
        pass
    return stream.tell()


def count_lines(path: str, end: int) -> int:
    """Count the lines in the first `end` bytes of a file."""
    count = 0
    if end:
        with open(path, "rb") as stream:
            while end > 0 and (content := stream.read(min(SIZE, end))):
                count += content.count(NEWLINE)
                end -= len(content)
    return count


def cut_texts(
    paths: Sequence, size: int | None = None, whole: bool = False
) -> Iterator[TextPart | TextBlock]:
    """Yield parts of about `size` bytes (None: SIZE) of those texts that are plain files; the
    blocks of others, or `whole` texts, where UserError says what can be read only once.
    """
    for path in map(str, paths):
        if os.path.isfile(path) and Path(path).suffix not in OPENERS:
            ends = [*range(size or SIZE, os.path.getsize(path), size or SIZE), None]
            yield from (
                TextPart(path, begin, end) for begin, end in zip([0, *ends], ends, strict=False)
            )
        elif not whole:
            yield from TextPart(path).blocks()
        elif os.path.isfile(path):
            yield TextPart(path)
        else:
            raise UserError(f"{path}: no file that can be cut into shards; write it to one")


def total_bytes(paths: Sequence) -> int | None:
    """Return the bytes of texts all of which are plain files; None where one is not."""
    plain = all(os.path.isfile(path) and Path(path).suffix not in OPENERS for path in paths)
    return sum(map(os.path.getsize, paths)) if plain else None


def count_bytes(part: "TextPart | TextBlock | PairBlock") -> int:
    """Return the bytes of a part or block of a text; of pairs, those of the targets."""
    if isinstance(part, PairBlock):
        return sum(len(text.encode()) + 1 for text in part.targets)
    if isinstance(part, TextBlock):
        return len(part.content)
    end = os.path.getsize(part.path) if part.end is None else part.end
    return end - part.begin


def read_blocks(paths: Sequence, nul: bool = False) -> Iterator[TextBlock]:
    """Yield the blocks of texts, one after the other: see `TextPart.blocks`."""
    for path in paths:
        yield from TextPart(str(path)).blocks(nul)


def read_text(path, nul: bool = False) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line without its end), as files.read_lines and read_blocks."""
    for block in read_blocks([path], nul):
        yield from enumerate(block.lines(), block.first)


class PairBlock(NamedTuple):
    """As many lines of a text (`target`) as of its `source`, and the first's number."""

    source: str
    target: str
    first: int
    sources: list[str]
    targets: list[str]


def read_pairs(targets: Sequence, sources: Sequence) -> Iterator[PairBlock]:
    """Yield lines beside those of as many sources, text by text; UserError for other numbers."""
    if len(targets) != len(sources):
        raise UserError(
            f"--source: {len(sources)} texts for {len(targets)} of --text; give one each, in their"
            " order"
        )
    for target, source in zip(map(str, targets), map(str, sources), strict=True):
        both = itertools.zip_longest(read_text(source), read_text(target))
        while rows := list(itertools.islice(both, PAIRS)):
            if None in (last := rows[-1]):
                lines = [sum(row[side] is not None for row in rows) for side in (0, 1)]
                before = next(row for row in last if row)[0] - len(rows)
                short, other = (source, target)[:: 1 if last[0] is None else -1]
                raise UserError(
                    f"{short}: ends after {before + min(lines)} lines, {other} has more; give texts"
                    " of which each line is the other's translation"
                )
            here, there = zip(*rows, strict=True)
            lines = [[text for _, text in side] for side in (here, there)]
            yield PairBlock(source, target, here[0][0], *lines)


def read_again(paths: Sequence) -> Iterator[str]:
    """Yield the lines of those texts that can be read more than once: of files, not of pipes."""
    for path in paths:
        if Path(path).is_file():
            yield from (line for _, line in read_text(path))
