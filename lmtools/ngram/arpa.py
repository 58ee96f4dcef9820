"""ARPA files, the text form of back-off n-gram models."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.base.log import track
from lmtools.ngram.counts import Grams
from lmtools.ngram.parsing import read_log

CHUNK = 1 << 16  # n-grams formatted at once
DECIMALS = 6
WIDTH = len("-99.") + DECIMALS
TAB, NEWLINE = range(2)  # where they lie in a Pool's bytes
LOWEST = -99.0  # log10 that ARPA files use for a probability of 0


def write(stream: BinaryIO, vocabulary: Sequence[str], grams: Sequence[Grams]) -> None:
    """Write the model that an estimator made of `grams`: those n-grams that are kept.

    A model of order 1 gets an empty section of bigrams, without which KenLM would not load it.
    """

    def pieces(n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
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
            yield words, values

    write_sections(stream, vocabulary, [gram.size for gram in grams], pieces)


def write_sections(
    stream: BinaryIO,
    vocabulary: Sequence[str],
    sizes: Sequence[int],
    pieces: Callable[[int], Iterable[tuple[np.ndarray, np.ndarray]]],
) -> None:
    """Write an ARPA file of `sizes` n-grams an order; `pieces` of an order are word ids (R, n) and
    probabilities, and below the highest order back-off weights (1 or 2, R), no logs.
    """
    padded = [*sizes, 0] if len(sizes) == 1 else sizes
    header = [f"ngram {n}={size}\n" for n, size in enumerate(padded, 1)]
    stream.write(("\\data\\\n" + "".join(header)).encode())
    lines = LineBytes(vocabulary)
    for n in range(1, len(padded) + 1):
        stream.write(f"\n\\{n}-grams:\n".encode())
        if n <= len(sizes):
            stream.writelines(lines.join(*piece) for piece in pieces(n))
    stream.write(b"\n\\end\\\n")


class LineBytes:
    """The bytes that lines are gathered from: tab, newline, and every word after a space."""

    def __init__(self, vocabulary: Sequence[str]):
        encoded = [f" {word}".encode() for word in vocabulary]
        self.bytes = np.frombuffer(b"\t\n" + b"".join(encoded), dtype=np.uint8)
        self.lengths = np.array([len(word) for word in encoded])
        self.starts = 2 + np.cumsum(self.lengths) - self.lengths

    def join(self, words: np.ndarray, values: np.ndarray) -> bytes:
        """Return lines `number<TAB>words[<TAB>number]` of `words` (R, n) ids and `values` (1 or 2,
        R).

        A line is a row of parts: `starts` and `lengths` (R, parts) say where the bytes of each lie
        in `letters`.
        """
        rows, n = words.shape
        digits, skip = decimals(values)
        letters = np.concatenate((self.bytes, digits.ravel()))
        # (1 or 2, R)
        number = len(self.bytes) + WIDTH * np.arange(skip.size).reshape(skip.shape) + skip
        starts = np.full((rows, n + 1 + 2 * len(values)), TAB)
        lengths = np.ones_like(starts)
        starts[:, 0], lengths[:, 0] = number[0], WIDTH - skip[0]
        starts[:, 2 : n + 2], lengths[:, 2 : n + 2] = self.starts[words], self.lengths[words]
        starts[:, 2] += 1  # no space before the first word
        lengths[:, 2] -= 1
        if len(values) > 1:
            starts[:, -2], lengths[:, -2] = number[1], WIDTH - skip[1]
        starts[:, -1] = NEWLINE
        return gather(letters, starts.ravel(), lengths.ravel())


def gather(letters: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> bytes:
    """Return the pieces of `letters` that begin at `starts` (P,), `lengths` (P,) long, in a row."""
    ends = np.cumsum(lengths)
    source = np.repeat(starts - ends + lengths, lengths)
    source += np.arange(len(source))
    return letters[source].tobytes()


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


def decimals(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log10 of probabilities (..., R) as ASCII (..., R, WIDTH), flush right, and the number
    (..., R) of leading bytes to skip; 0 is `0`. Back-off weights may be greater than 1.
    """
    with np.errstate(divide="ignore"):
        scaled = np.rint(np.clip(np.log10(values), LOWEST, -LOWEST) * -(10**DECIMALS))
    scaled, positive = np.abs(scaled).astype(np.int64), scaled < 0
    letters = np.full((*values.shape, WIDTH), ord("-"), dtype=np.uint8)
    rest = scaled.astype(np.int32)
    for place in [*range(WIDTH - 1, WIDTH - 1 - DECIMALS, -1), 2, 1]:
        rest, letters[..., place] = rest // 10, rest % 10 + ord("0")
    letters[..., 3] = ord(".")
    small = scaled < 10 ** (DECIMALS + 1)
    letters[..., 1][small] = ord("-")
    return letters, np.where(scaled == 0, WIDTH - 1, small.astype(np.int64) + positive)


def read(path) -> list[dict[tuple[str, ...], tuple[float, float]]]:
    """Read the n-grams of an ARPA file (.gz, .xz), a dict an order: words to (log10 probability,
    log10 back-off weight, 0 where none stands).
    """
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
