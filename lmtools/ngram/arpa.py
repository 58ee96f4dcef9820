"""ARPA files, the text form of back-off n-gram models."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.base.log import track
from lmtools.ngram.counts import Grams
from lmtools.ngram.formatting import LineBytes, scale_logs
from lmtools.ngram.parsing import read_log

CHUNK = 1 << 16  # n-grams formatted at once


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
            stream.writelines(lines.join(words, scale_logs(values)) for words, values in pieces(n))
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
