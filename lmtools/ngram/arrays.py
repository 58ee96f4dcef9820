"""ARPA files as arrays, and back."""

from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

import numpy as np

from lmtools.base.errors import UserError
from lmtools.ngram import arpa
from lmtools.ngram.arpa_lines import AGAIN, ArpaLines
from lmtools.ngram.backoff import SHIFT, WORD, BackoffModel, Level, ones, pack
from lmtools.ngram.parsing import SHOWN, WordTable
from lmtools.ngram.sentences import BOS, SYMBOLS


def new_vocabulary() -> dict[str, int]:
    """Return the ids of the symbols, to which `read_arpa` adds words."""
    return {symbol: i for i, symbol in enumerate(SYMBOLS)}


def read_arpa(path, ids: dict[str, int], counts: Sequence[int] | None = None) -> BackoffModel:
    """Read the model of an ARPA file (.gz, .xz) of any dialect, with so many n-grams an order where
    `counts` are known; `ids` gets its new words.

    Its unigrams are of all ids so far; `fill_unigrams` makes them of all in the end. An n-gram
    without its context gets one, which changes no probability. UserError where the file is damaged
    or has an n-gram twice, and where `counts` are known for one without its context: none of ours.
    """
    lines = ArpaLines(path)
    sizes = lines.read_header()
    if counts and sizes[: len(counts)] != list(counts):
        raise UserError(
            f"{path}: is not the file that config.yaml beside it describes (damaged or changed);"
            " estimate it again"
        )
    model, table = BackoffModel(), None
    for n in range(1, len(sizes) + 1):
        lines.expect_section(n, sizes)
        if n == 2:
            table = WordTable(ids)
        model.levels.append(
            read_level(lines, model, sizes, ids, table=table, strict=counts is not None)
        )
    lines.expect_end(sizes)
    model.drop_empty()
    return model


def read_level(
    lines: ArpaLines,
    model: BackoffModel,
    sizes: Sequence[int],
    ids: dict,
    *,
    table: WordTable | None,
    strict: bool,
) -> Level:
    """Read the n-grams of the order after those of `model`, sorted; `table` of the unigrams, when
    they are known. `model` gets their contexts, or if `strict` UserError where it lacks one.
    """
    n = model.order + 1
    size, last = sizes[n - 1], n == len(sizes) > 1
    key, prob = np.empty(size, dtype=np.int64), np.empty(size)
    backoff, at = ones(size) if last else np.empty(size), 0
    while at < size and (block := lines.take(size - at)):
        words, values = lines.parse(block, n, ids, table)
        here = slice(at, at + len(words))
        if n == 1:
            key[here] = words[:, 0]
        else:
            if strict:
                refuse_missing(lines, block, model, words)
            key[here] = pack(add_contexts(model, words, key[:at]), words[:, -1])
        prob[here] = values[0]
        if not last:
            backoff[here] = values[1]
        at += len(words)
    level = Level(key, prob, backoff)
    if (np.diff(key[:at]) < 0).any():  # one array after the other, for the sake of memory
        by_key = np.argsort(key[:at])
        level.key = key = key[by_key]
        level.prob = prob = prob[by_key]
        level.backoff = backoff = backoff if last else backoff[by_key]
    if at < size or (np.diff(key) == 0).any():
        fault = f"has {at} of {size} lines" if at < size else "has an n-gram twice"
        raise UserError(f"{lines.name}: its section of order {n} {fault}; {AGAIN}")
    return level if n > 1 else complete_unigrams(level, len(ids))


def complete_unigrams(level: Level, size: int) -> Level:
    """Return the unigrams of all words, of `size` in all, of which the level lists some."""
    whole = Level(np.arange(size), np.zeros(size), np.ones(size))
    whole.prob[level.key], whole.backoff[level.key] = level.prob, level.backoff
    whole.prob[BOS] = 0
    return whole


def add_contexts(model: BackoffModel, words: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Return (R,) indices of the contexts of n-grams (R, n); those that `model` lacks are added,
    and the keys of n-grams so far, `key`, follow.
    """
    context = model.find(words[:, :-1])
    missing = context < 0
    if not missing.any():
        return context
    moved = model.add_ngrams(words[missing, :-1])
    key[:] = pack(moved[key >> SHIFT], key & WORD)
    return model.find(words[:, :-1])


def refuse_missing(lines: ArpaLines, block: bytes, model: BackoffModel, words: np.ndarray) -> None:
    """Raise UserError where one of the lines taken last is an n-gram whose context is not there."""
    missing = model.find(words[:, :-1]) < 0
    if missing.any():
        number, line = lines.numbered(block)[int(np.argmax(missing))]
        raise UserError(
            f"{lines.name}:{number}: the context of {line!r:.{SHOWN}} is no n-gram of the file;"
            f" {AGAIN}"
        )


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
