"""ARPA files as arrays, and back."""

from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

import numpy as np

from lmtools.errors import UserError
from lmtools.files import not_utf8, raw_blocks
from lmtools.ngram import arpa
from lmtools.ngram.backoff import BackoffModel, Level, ones, pack
from lmtools.ngram.parsing import WordTable, parse_section
from lmtools.ngram.sentences import BOS, SYMBOLS

LINES = 1 << 16  # parsed at once


def new_vocabulary() -> dict[str, int]:
    """The ids of the symbols, to which `read_arpa` adds words."""
    return {symbol: i for i, symbol in enumerate(SYMBOLS)}


def read_arpa(path, ids: dict[str, int], counts: Sequence[int] | None = None) -> BackoffModel:
    """The model of an ARPA file (.gz, .xz), with so many n-grams an order where `counts` are known;
    `ids` gets its new words.

    Its unigrams are of all ids so far; `fill_unigrams` makes them of all in the end. UserError
    where the file is damaged, has an n-gram twice or one without its context.
    """
    lines = ArpaLines(path)
    sizes: dict[int, int] = {}
    model = BackoffModel()
    while block := lines.take(1):
        number, line = lines.number, lines.decode(block)[0]
        if line.startswith("ngram "):
            order, _, size = line[len("ngram ") :].partition("=")
            if not (order.strip().isdigit() and size.strip().isdigit()):
                raise UserError(f"{path}:{number}: expected ngram N=COUNT; write the file again")
            sizes[int(order)] = int(size)
        elif line.startswith("\\") and line.endswith("-grams:"):
            n = model.order + 1
            if line != f"\\{n}-grams:" or n not in sizes:
                raise UserError(
                    f"{path}:{number}: expected the section of order {n} and its `ngram {n}=`;"
                    " write the file again"
                )
            if n == 2:
                lines.table = WordTable(ids)
            model.levels.append(read_level(lines, model, n, sizes, ids))
    if not sizes or model.order < max(sizes):
        raise UserError(f"{path}: not a whole ARPA file; estimate or fetch it again")
    if counts and [sizes[n] for n in sorted(sizes)][: len(counts)] != list(counts):
        raise UserError(
            f"{path}: is not the file that config.yaml beside it describes (damaged or changed);"
            " estimate it again"
        )
    model.drop_empty()
    return model


class ArpaLines:
    """The lines of an ARPA file: `number` is that of the first of those taken last."""

    def __init__(self, path):
        self.path, self.number, self.following = path, 0, 1
        self.blocks, self.left = raw_blocks(path, LINES), []
        self.table: WordTable | None = None  # of the unigrams, when they are known

    def take(self, most: int) -> list[bytes]:
        """The next lines with their ends, 1 to `most`; none at the end of the file."""
        block = self.left or next(self.blocks, [])
        taken, self.left = block[:most], block[most:]
        self.number = self.following
        self.following += len(taken)
        return taken

    def decode(self, block: Sequence[bytes]) -> list[str]:
        """The lines taken last, without their ends and a byte-order mark."""
        lines = []
        for number, raw in enumerate(block, self.number):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise not_utf8(self.path, f"{self.path}:{number}") from None
            lines.append(line.removesuffix("\n").removesuffix("\r"))
        return lines

    def parse(self, block: Sequence[bytes], n: int, ids: dict):
        """`parse_lines` of the lines taken last."""
        if self.table:
            text = b"".join(block).replace(b"\r\n", b"\n")
            found = parse_section(text if text.endswith(b"\n") else text + b"\n", n, self.table)
            if found:
                return found
        return parse_lines(self.path, list(enumerate(self.decode(block), self.number)), n, ids)


def read_level(
    lines: ArpaLines, model: BackoffModel, n: int, sizes: Mapping[int, int], ids: dict
) -> Level:
    """The n-grams of order `n` in the next `sizes[n]` lines, sorted."""
    path, size, last = lines.path, sizes[n], n == max(sizes) > 1
    key, prob = np.empty(size, dtype=np.int64), np.empty(size)
    backoff, at = ones(size) if last else np.empty(size), 0
    while at < size and (block := lines.take(size - at)):
        words, values = lines.parse(block, n, ids)
        here = slice(at, at + len(block))
        if n == 1:
            key[here] = words[:, 0]
        else:
            context = model.find(words[:, :-1])
            if (context < 0).any():
                row = int(np.argmax(context < 0))
                raise UserError(
                    f"{path}:{lines.number + row}: the context of {lines.decode(block)[row]!r} is"
                    " no n-gram of the file; write the file again"
                )
            key[here] = pack(context, words[:, -1])
        prob[here] = values[0]
        if not last:
            backoff[here] = values[1]
        at += len(block)
    if (np.diff(key) < 0).any():  # one array after the other, for the sake of memory
        by_key = np.argsort(key)
        key = key[by_key]
        prob = prob[by_key]
        backoff = backoff if last else backoff[by_key]
    twice = bool((np.diff(key) == 0).any())
    if at < size or twice:
        fault = "has an n-gram twice" if twice and at == size else f"has {at} of {size} lines"
        raise UserError(f"{path}: its section of order {n} {fault}; write the file again")
    level = Level(key, prob, backoff)
    if n > 1:
        return level
    made = Level(np.arange(len(ids)), np.zeros(len(ids)), np.ones(len(ids)))
    made.prob[level.key], made.backoff[level.key] = level.prob, level.backoff
    made.prob[BOS] = 0
    return made


def parse_lines(path, block: Sequence[tuple[int, str]], n: int, ids: dict):
    """(R, n) word ids and (2, R) probability and back-off weight of lines of a section."""
    try:
        fields = [line.split("\t") for _, line in block]
        words = " ".join([field[1] for field in fields]).split(" ")
        if len(words) != n * len(block):
            raise ValueError
        if n == 1:
            words = ["<unk>" if word == "<UNK>" else word for word in words]  # as KenLM reads it
            for word in words:
                ids.setdefault(word, len(ids))
        found = np.fromiter(map(ids.__getitem__, words), np.int64, len(words))
        logs = [[field[0] for field in fields], [(*field, "0")[2] for field in fields]]
        # 1e-99, which files have for 0, is 0 beside any other
        values = 10.0 ** np.array(logs).astype(np.float64)
        if not np.isfinite(values).all():
            raise ValueError
        return found.reshape(-1, n), values
    except (ValueError, KeyError, IndexError):
        if len(block) > 1:
            for row in block:
                parse_lines(path, [row], n, ids)
        raise UserError(
            f"{path}:{block[0][0]}: expected log10 probability, TAB, {n} words of the unigrams,"
            " TAB, back-off; write the file again"
        ) from None


def fill_unigrams(model: BackoffModel, size: int) -> None:
    """Give words that a model lacks, of `size` in all, the probability 0, as SRILM does: so its
    probabilities of all words sum to 1 as before, and unknown words keep theirs.
    """
    level, more = model.levels[0], size - len(model.levels[0])
    prob, backoff = np.append(level.prob, np.zeros(more)), np.append(level.backoff, np.ones(more))
    model.levels[0] = Level(np.arange(size), prob, backoff)


def write_arpa(stream: BinaryIO, model: BackoffModel, ids: Mapping[str, int]) -> None:
    """Write a model as an ARPA file."""
    start = model.levels[0].prob.copy()
    start[BOS] = 1  # as lmplz and our estimator write it

    def pieces(n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        level = model.levels[n - 1]
        prob = start if n == 1 else level.prob
        for first in range(0, len(level), arpa.CHUNK):
            rows = slice(first, first + arpa.CHUNK)
            values = [prob[rows], level.backoff[rows]][: 2 if n < model.order else 1]
            yield model.spell(n, rows), np.stack(values)

    arpa.write_sections(stream, list(ids), model.counts, pieces)
