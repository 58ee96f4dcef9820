"""ARPA files, the text form of back-off n-gram models, and their lines as bytes, many at a time.

A line is a row of pieces of at most 8 bytes: halves of numbers, which tables have, and beginnings
of words. Pieces are stored in their order, 8 bytes each, so that what a piece lacks of 8 bytes is
overwritten by the next one. What words have beyond 8 bytes fills the gaps that were left for it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, NamedTuple

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.base.log import track
from lmtools.ngram.counts import Grams
from lmtools.ngram.parsing import read_log
from lmtools.ngram.sentences import LOWEST

AHEAD = 2  # pieces of n-grams whose lines wait
PART = 8  # bytes of a piece
DECIMALS = 6
SCALE = 10**DECIMALS
LOW = 10**4  # of a scaled logarithm the last four digits are one piece, what is before them another
HIGH = 99 * SCALE // LOW + 1
ZERO = 2 * HIGH  # where the piece of 0 stands, behind those of negative and of positive logarithms
CHUNK = 1 << 16  # n-grams formatted at once


def scale_logs(values: np.ndarray) -> np.ndarray:
    """Return log10 of probabilities or back-off weights in units of the last decimal, int32."""
    with np.errstate(divide="ignore"):
        logs = np.log10(values)
    np.clip(logs, LOWEST, -LOWEST, out=logs)
    logs *= SCALE
    return np.rint(logs, out=logs).astype(np.int32)


def eights(letters: np.ndarray) -> np.ndarray:
    """Return the 8 bytes that begin at each of `letters`, as integers in the same memory."""
    return np.ndarray(len(letters) - PART + 1, "<u8", letters, strides=(1,))


def number_beginnings(before: str) -> tuple[np.ndarray, np.ndarray]:
    """Return pieces (P,) of numbers up to the second decimal after `before`, and their lengths."""
    places = [f"{high // 100}.{high % 100:02}" for high in range(HIGH)]
    pieces = [f"{before}{sign}{place}" for sign in ("-", "") for place in places]
    padded = np.array([*pieces, f"{before}0"], dtype=f"S{PART}")
    return padded.view("<u8"), np.char.str_len(padded).astype(np.int32)


def number_ends(after: str) -> tuple[np.ndarray, np.ndarray]:
    """Return pieces (P,) of the last four decimals, none for 0, and `after`; their lengths."""
    padded = np.array([*(f"{low:04}{after}" for low in range(LOW)), after], dtype=f"S{PART}")
    return padded.view("<u8"), np.char.str_len(padded).astype(np.int32)


class LineBytes:
    """The pieces of lines: numbers, and every word of a vocabulary, alone and after a space."""

    def __init__(self, vocabulary: Sequence[str]):
        spaced = [f" {word}".encode() for word in vocabulary]
        lengths = np.fromiter(map(len, spaced), np.int32, len(spaced))
        self.letters = eights(np.frombuffer(b"".join(spaced) + bytes(PART), dtype=np.uint8))
        self.ends = np.cumsum(lengths, dtype=np.int64)
        starts = self.ends - lengths
        self.first = self.letters[starts + 1], lengths - 1
        self.others = self.letters[starts], lengths
        self.probs = number_beginnings("\n"), number_ends("\t")
        self.weights = number_beginnings("\t"), number_ends("")

    def join(self, words: np.ndarray, logs: np.ndarray) -> bytes:
        """Return lines `number<TAB>words[<TAB>number]` of ids (R, n) and `logs` (., R)."""
        if not len(words):
            return b""
        columns = [*self.number(self.probs, logs[0]), (self.first, words[:, 0])]
        columns += [(self.others, word) for word in words.T[1:]]
        if len(logs) > 1:
            columns += self.number(self.weights, logs[1])
        pieces = np.empty((len(words), len(columns)), dtype="<u8")
        lengths = np.empty(pieces.shape, dtype=np.int32)
        for place, ((content, sizes), index) in enumerate(columns):
            pieces[:, place], lengths[:, place] = content[index], sizes[index]
        ends = np.cumsum(lengths.ravel(), dtype=np.int64)
        starts = (ends - lengths.ravel()).reshape(pieces.shape)
        text = np.empty(ends[-1] + PART, dtype=np.uint8)
        lines = eights(text)
        lines[starts.ravel()] = pieces.ravel()
        spelled = slice(2, 2 + words.shape[1])
        self.fill(lines, words.ravel(), starts[:, spelled].ravel(), lengths[:, spelled].ravel())
        text[ends[-1]] = ord("\n")
        return text[1 : ends[-1] + 1].tobytes()  # each line has the end of the one before it

    def join_ahead(self, pieces: Iterable) -> Iterator[bytes]:
        waiting: deque = deque()
        with ThreadPoolExecutor(1) as pool:
            for piece in pieces:
                waiting.append(
                    pool.submit(lambda p: self.join(p.words, scale_logs(p.values)), piece)
                )
                if len(waiting) > AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def number(self, tables, logs: np.ndarray) -> list[tuple]:
        """Return the pieces of numbers: tables and which of their pieces."""
        high, low = np.divmod(np.abs(logs), LOW)
        high[logs > 0] += HIGH
        zero = logs == 0
        high[zero], low[zero] = ZERO, LOW
        return [(tables[0], high), (tables[1], low)]

    def fill(self, lines: np.ndarray, words: np.ndarray, starts: np.ndarray, lengths: np.ndarray):
        """Store what words (W,) have beyond a piece: their last 8 bytes, then those in between."""
        rows = np.flatnonzero(lengths > PART)
        words, starts, lengths = words[rows], starts[rows], lengths[rows]
        ends = self.ends[words]
        lines[starts + lengths - PART] = self.letters[ends - PART]
        for done in range(PART, int(lengths.max(initial=0)) - PART, PART):
            rows = np.flatnonzero(lengths > done + PART)
            lines[starts[rows] + done] = self.letters[ends[rows] - lengths[rows] + done]


class Piece(NamedTuple):
    """N-grams of an order: ids (R, n), probabilities and back-off weights (1 or 2, R)."""

    words: np.ndarray
    values: np.ndarray


def write(stream: BinaryIO, vocabulary: Sequence[str], grams: Sequence[Grams]) -> None:
    """Write the model of `grams`: the n-grams that are kept. One of order 1 gets an empty section
    of bigrams, without which KenLM would not load it.
    """

    def pieces(n: int) -> Iterator[Piece]:
        gram = grams[n - 1]
        starts = range(0, len(gram), CHUNK)
        label, size = f"write {n}-grams", len(gram)
        for start in track(starts, label, size, "n-gram", size=lambda at: min(CHUNK, size - at)):
            rows = start, start + CHUNK
            columns = (gram.prob, gram.backoff)[: 1 + (n < len(grams))]
            values = np.stack([column.read(*rows) for column in columns])
            words = spell(grams[:n], *rows)
            if gram.size < len(gram):
                kept = gram.kept.read(*rows)
                words, values = words[kept], values[:, kept]
            yield Piece(words, values)

    write_sections(stream, vocabulary, [gram.size for gram in grams], pieces)


def write_sections(
    stream: BinaryIO,
    vocabulary: Sequence[str],
    sizes: Sequence[int],
    pieces: Callable[[int], Iterable[Piece]],
) -> None:
    """Write an ARPA file of `sizes` n-grams an order, which come in `pieces`."""
    padded = [*sizes, 0] if len(sizes) == 1 else sizes
    header = [f"ngram {n}={size}\n" for n, size in enumerate(padded, 1)]
    stream.write(("\\data\\\n" + "".join(header)).encode())
    lines = LineBytes(vocabulary)
    for n in range(1, len(padded) + 1):
        stream.write(f"\n\\{n}-grams:\n".encode())
        if n <= len(sizes):
            for text in lines.join_ahead(pieces(n)):
                stream.write(text)
    stream.write(b"\n\\end\\\n")


def spell(grams: Sequence[Grams], start: int, stop: int) -> np.ndarray:
    """Return (R, n) ids of the words of those rows of the highest order n of `grams`."""
    columns, at = [], None
    for gram in reversed(grams):
        # suffixes are sorted
        if at is not None and len(at):
            start, stop = int(at[0]), int(at[-1]) + 1
        first, suffix = gram.first.read(start, stop), gram.suffix.read(start, stop)
        within = slice(len(first)) if at is None else at - start
        columns.append(first[within])
        at = suffix[within]
    return np.stack(columns, axis=1)


def read(path) -> list[dict[tuple[str, ...], tuple[float, float]]]:
    """Read an ARPA file (.gz, .xz): a dict an order, words to (log10 p, log10 back-off or 0)."""
    orders: list[dict[tuple[str, ...], tuple[float, float]]] = []
    for number, line in read_lines(path):
        if line.startswith("\\") and line.endswith("-grams:"):
            orders.append({})
        elif orders and line and not line.startswith("\\"):
            try:
                prob, words, *backoff = line.split("\t")
                orders[-1][tuple(words.split(" "))] = (
                    read_log(prob),
                    (read_log(backoff[0]) if backoff else 0.0),
                )
            except ValueError:
                raise UserError(
                    f"{path}:{number}: expected log10 probability, TAB, words, TAB, back-off; write"
                    " the file again"
                ) from None
    return orders
