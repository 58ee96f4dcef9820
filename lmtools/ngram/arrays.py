"""ARPA files as arrays, and back. Lines are read in any dialect: text before the header, blanks for
tabs, a byte-order mark, line ends of any system, no end mark.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

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
from lmtools.ngram import arpa
from lmtools.ngram.backoff import SHIFT, WORD, BackoffModel, Level, complete_unigrams, ones, pack
from lmtools.ngram.parsing import SHOWN, NewWords, WordTable, parse_lines, parse_section
from lmtools.ngram.sentences import BOS, SYMBOLS

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


TOGETHER = 1 << 19  # n-grams whose contexts are looked up together


def new_vocabulary() -> dict[str, int]:
    """Return the ids of the symbols, to which `read_arpa` adds words."""
    return {symbol: i for i, symbol in enumerate(SYMBOLS)}


def read_arpa(path, ids: dict[str, int], counts: Sequence[int] | None = None) -> BackoffModel:
    """Read an ARPA file of any dialect, with `counts` an order where known; `ids` gets new words,
    an n-gram its missing context. UserError for damage and what is there twice.
    """
    return ArpaReader(path, ids, counts).read()


class ArpaReader:
    """A file that `read_arpa` reads."""

    def __init__(self, path, ids: dict[str, int], counts: Sequence[int] | None):
        self.lines, self.ids = ArpaLines(path), ids
        self.sizes, self.strict = self.lines.read_header(), counts is not None
        self.model, self.table = BackoffModel(), None
        if counts and self.sizes[: len(counts)] != list(counts):
            raise UserError(
                f"{path}: is not the file that config.yaml beside it describes (damaged or"
                " changed); estimate it again"
            )

    def read(self) -> BackoffModel:
        for n in range(1, len(self.sizes) + 1):
            self.lines.expect_section(n, self.sizes)
            if n == 2:
                self.table = WordTable(self.ids)
            level = self.read_level(n)
            self.model.levels.append(level if n > 1 else complete_unigrams(level, len(self.ids)))
            prob = self.model.levels[0].prob
            if n == 1 and not prob[BOS] and prob[self.ids.get(SYMBOLS[BOS].upper(), BOS)]:
                raise self.lines.refuse_capitals()
        self.lines.expect_end(self.sizes)
        self.model.drop_empty()
        return self.model

    def read_level(self, n: int) -> Level:
        size, name = self.sizes[n - 1], f"{self.lines.name}: its section of order {n}"
        twice = UserError(f"{name} has an n-gram twice; {AGAIN}")
        rows = LevelRows(size, n == len(self.sizes) > 1, twice)
        for batch in self.parse_batches(n, size):
            words, values = batch.words, batch.values
            if n == 1:
                rows.append(key=words[:, 0], prob=values[0], backoff=values[1])
                continue
            context = self.model.find(words[:, :-1])
            if len(missing := np.flatnonzero(context < 0)):
                if self.strict:
                    raise batch.refuse_missing(self.lines, missing[0])
                rows.move(self.model.add_ngrams(words[missing, :-1]))
                context = self.model.find(words[:, :-1])
            rows.append(key=pack(context, words[:, -1]), prob=values[0], backoff=values[1])
        if len(rows) < size:
            raise UserError(f"{name} has {len(rows)} of {size} lines; {AGAIN}")
        return rows.finish()

    def parse_batches(self, n: int, size: int) -> Iterator["NgramBatch"]:
        """Yield at most `size` n-grams, TOGETHER at once: so neighbours are looked up together."""
        parts, waiting = [], 0
        while size and (block := self.lines.take(size)):
            words, values = self.lines.parse(block, n, self.ids, self.table)
            parts.append((self.lines.number, block, words.astype(np.int32), values))
            size, waiting = size - len(words), waiting + len(words)
            if waiting >= TOGETHER:
                yield NgramBatch.of(parts)
                parts, waiting = [], 0
        if parts:
            yield NgramBatch.of(parts)


class NgramBatch(NamedTuple):
    """N-grams of some blocks of lines: word ids (R, n), probabilities and back-off weights (2, R);
    of each block the number of its first line, its text, and how many n-grams it has.
    """

    words: np.ndarray
    values: np.ndarray
    blocks: list[tuple[int, bytes, int]]

    @classmethod
    def of(cls, parts: Sequence[tuple[int, bytes, np.ndarray, np.ndarray]]) -> "NgramBatch":
        """Join parts: number of the first line, text, words and values of each."""
        words, values = (np.concatenate([part[i] for part in parts], axis=i - 2) for i in (2, 3))
        return cls(words, values, [(number, text, len(rows)) for number, text, rows, _ in parts])

    def refuse_missing(self, lines: ArpaLines, row: int) -> UserError:
        ends = np.cumsum([size for _, _, size in self.blocks])
        place = int(np.searchsorted(ends, row, side="right"))
        lines.number, text, size = self.blocks[place]
        at, line = lines.numbered(text)[row - ends[place] + size]
        return UserError(
            f"{lines.name}:{at}: the context of {line!r:.{SHOWN}} is no n-gram of the file; {AGAIN}"
        )


class LevelRows:
    """The n-grams of one order as they are read; `last`: no back-off; `twice`: the error on two."""

    def __init__(self, size: int, last: bool, twice: UserError):
        self.key, self.prob = np.empty(size, dtype=np.int64), np.empty(size)
        self.backoff = None if last else np.empty(size)
        self.at, self.twice = 0, twice

    def __len__(self) -> int:
        return self.at

    def append(self, *, key: np.ndarray, prob: np.ndarray, backoff: np.ndarray) -> None:
        here = slice(self.at, self.at + len(key))
        self.key[here], self.prob[here] = key, prob
        if self.backoff is not None:
            self.backoff[here] = backoff
        self.at = here.stop

    def move(self, places: np.ndarray | None) -> None:
        """Have the contexts so far at other places, as `BackoffModel.add_ngrams` gives them."""
        key = self.key[: self.at]
        key[:] = pack(places[key >> SHIFT], key & WORD)

    def finish(self) -> Level:
        """Return the n-grams so far, sorted; UserError where one is there twice."""
        key, prob = self.key[: self.at], self.prob[: self.at]
        backoff = ones(self.at) if self.backoff is None else self.backoff[: self.at]
        if (np.diff(key) < 0).any():  # one array after the other, for the sake of memory
            by_key = np.argsort(key)
            self.key = key = key[by_key]
            self.prob = prob = prob[by_key]
            backoff = backoff if self.backoff is None else backoff[by_key]
        if (np.diff(key) == 0).any():
            raise self.twice
        return Level(key, prob, backoff)


def write_arpa(stream: BinaryIO, model: BackoffModel, ids: Mapping[str, int]) -> None:
    start = model.levels[0].prob.copy()
    start[BOS] = 1  # as lmplz and our estimator write it

    def pieces(n: int) -> Iterator[arpa.Piece]:
        level, done = model.levels[n - 1], 0
        for key, prob, _ in level.blocks():
            backoff = level.backoff[done : done + len(key)]
            columns = [start[done:] if n == 1 else prob, backoff][: 1 + (n < model.order)]
            done += len(key)
            for first in range(0, len(key), arpa.CHUNK):
                rows = slice(first, first + arpa.CHUNK)
                values = np.stack([each[rows] for each in columns])
                yield arpa.Piece(model.spell_keys(n, key[rows]), values)

    arpa.write_sections(stream, list(ids), model.counts, pieces)
