"""ARPA files as arrays, and back."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import BinaryIO

import numpy as np

from lmtools.errors import UserError
from lmtools.files import read_lines
from lmtools.ngram import arpa
from lmtools.ngram.backoff import BackoffModel, Level, pack
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
    lines = read_lines(path)
    sizes: dict[int, int] = {}
    model = BackoffModel()
    for number, line in lines:
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
            rows = islice(lines, sizes[n])
            model.levels.append(read_level(path, rows, model, n, sizes[n], ids))
    if not sizes or model.order < max(sizes):
        raise UserError(f"{path}: not a whole ARPA file; estimate or fetch it again")
    if counts and [sizes[n] for n in sorted(sizes)][: len(counts)] != list(counts):
        raise UserError(
            f"{path}: is not the file that config.yaml beside it describes (damaged or changed);"
            " estimate it again"
        )
    model.drop_empty()
    return model


def read_level(
    path, rows: Iterator[tuple[int, str]], model: BackoffModel, n: int, size: int, ids: dict
) -> Level:
    """The n-grams of order `n` in the next `size` lines, sorted."""
    key, prob = np.empty(size, dtype=np.int64), np.empty(size)
    backoff, at = np.empty(size), 0
    while block := list(islice(rows, LINES)):
        words, values = parse_lines(path, block, n, ids)
        here = slice(at, at + len(block))
        if n == 1:
            key[here] = words[:, 0]
        else:
            context = model.find(words[:, :-1])
            if (context < 0).any():
                number, line = block[int(np.argmax(context < 0))]
                raise UserError(
                    f"{path}:{number}: the context of {line!r} is no n-gram of the file; write the"
                    " file again"
                )
            key[here] = pack(context, words[:, -1])
        prob[here], backoff[here] = values
        at += len(block)
    by_key = np.argsort(key)
    key = key[by_key]
    twice = bool((np.diff(key) == 0).any())
    if at < size or twice:
        fault = "has an n-gram twice" if twice and at == size else f"has {at} of {size} lines"
        raise UserError(f"{path}: its section of order {n} {fault}; write the file again")
    level = Level(key, prob[by_key], backoff[by_key])
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
