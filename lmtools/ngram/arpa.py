"""ARPA files, the text form of back-off n-gram models."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import BinaryIO, NamedTuple

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.base.log import track
from lmtools.ngram.archive import Archive
from lmtools.ngram.counts import Grams
from lmtools.ngram.formatting import LineBytes
from lmtools.ngram.parsing import read_log

CHUNK = 1 << 16  # n-grams formatted at once


class Piece(NamedTuple):
    """N-grams of an order: word ids (R, n), probabilities, and below the highest order back-off
    weights (1 or 2, R), no logs; (R,) indices of contexts and suffixes among those one shorter.
    """

    words: np.ndarray
    values: np.ndarray
    context: np.ndarray
    suffix: np.ndarray


def write(
    stream: BinaryIO,
    vocabulary: Sequence[str],
    grams: Sequence[Grams],
    archive: Archive | None = None,
) -> None:
    """Write the model that an estimator made of `grams`: those n-grams that are kept; to an
    `archive` too.

    A model of order 1 gets an empty section of bigrams, without which KenLM would not load it.
    """

    def pieces(n: int) -> Iterator[Piece]:
        gram = grams[n - 1]
        places = number_kept(grams[n - 2]) if archive and n > 1 else None
        starts = range(0, len(gram), CHUNK)
        label, size = f"write {n}-grams", len(gram)
        for start in track(starts, label, size, "n-gram", size=lambda at: min(CHUNK, size - at)):
            rows = start, start + CHUNK
            columns = (gram.prob, gram.backoff)[: 1 + (n < len(grams))]
            values = np.stack([column.read(*rows) for column in columns])
            words = spell(grams[:n], *rows)
            context, suffix = gram.context.read(*rows), gram.suffix.read(*rows)
            if gram.size < len(gram):
                kept = gram.kept.read(*rows)
                words, values = words[kept], values[:, kept]
                context, suffix = context[kept], suffix[kept]
            if places is not None:
                context, suffix = places[context], places[suffix]
            yield Piece(words, values, context, suffix)

    write_sections(stream, vocabulary, [gram.size for gram in grams], pieces, archive=archive)


def number_kept(gram: Grams) -> np.ndarray | None:
    """Return (N,) int32 the index of each n-gram among those that are kept, -1 of others; None
    where all are.
    """
    if gram.size == len(gram):
        return None
    kept = gram.kept.read()
    return np.where(kept, np.cumsum(kept, dtype=np.int32) - 1, np.int32(-1))


def write_sections(
    stream: BinaryIO,
    vocabulary: Sequence[str],
    sizes: Sequence[int],
    pieces: Callable[[int], Iterable[Piece]],
    archive: Archive | None = None,
) -> None:
    """Write an ARPA file of `sizes` n-grams an order, which come in `pieces`, and an `archive`."""
    padded = [*sizes, 0] if len(sizes) == 1 else sizes
    header = [f"ngram {n}={size}\n" for n, size in enumerate(padded, 1)]
    stream.write(("\\data\\\n" + "".join(header)).encode())
    lines = LineBytes(vocabulary)
    if archive:
        archive.add_words(vocabulary)
    for n in range(1, len(padded) + 1):
        stream.write(f"\n\\{n}-grams:\n".encode())
        if n > len(sizes):
            continue
        with archive.section(n, sizes) if archive else nullcontext(lambda piece, logs: None) as add:
            for piece, logs, text in lines.join_ahead(pieces(n)):
                stream.write(text)
                add(piece, logs)
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
