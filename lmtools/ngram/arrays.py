"""ARPA files as arrays, and back."""

from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np

from lmtools.base.errors import UserError
from lmtools.ngram import arpa
from lmtools.ngram.arpa_lines import AGAIN, ArpaLines
from lmtools.ngram.backoff import SHIFT, WORD, BackoffModel, Level, complete_unigrams, ones, pack
from lmtools.ngram.parsing import SHOWN, WordTable
from lmtools.ngram.sentences import BOS, SYMBOLS

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
