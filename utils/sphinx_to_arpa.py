#!/usr/bin/env python3
"""sphinx_to_arpa.py LM.bin OUT.arpa: the ARPA file of a language model in CMU Sphinx's binary
form, such as pocketsphinx's en-us.lm.bin. Sphinx's sphinx_lm_convert fails on pruned models.

The form, after pocketsphinx's lm_trie.c and lm_trie_quant.c, little-endian:

- the header, the order (a byte), the number of n-grams of each order, a number without meaning;
- tables of 65,536 floats: probabilities and back-off weights of each order from 2 on; the highest
  order has no back-off weights;
- unigrams: probability, back-off weight, first bigram; one more unigram ends the bigrams;
- records of bits of each order from 2 on: word, back-off weight and probability as rows of the
  tables, first n-gram of the next order. It is a trie from the last word of an n-gram to its first;
- the words, each with a zero byte after it.

Logarithms have the base 1.0001.
"""

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError, exit_with_message

HEADER = b"Trie Language Model"
LOG10 = math.log10(1.0001)
BINS = 1 << 16
UNIGRAM = np.dtype([("prob", "<f4"), ("backoff", "<f4"), ("first", "<u4")])


class Bytes:
    """The bytes of a file that were not read yet."""

    def __init__(self, path: Path):
        self.path, self.left = path, np.fromfile(path, np.uint8)

    def take(self, size: int) -> np.ndarray:
        if size > len(self.left):
            raise UserError(f"{self.path}: ends too early; fetch it again")
        taken, self.left = self.left[:size], self.left[size:]
        return taken

    def numbers(self, count: int) -> list[int]:
        return self.take(4 * count).view("<u4").tolist()


def read_bits(records: np.ndarray, start: int, width: int, rows: int, size: int) -> np.ndarray:
    """Return the `width` bits from bit `start` on of the first `rows` records of `size` bits."""
    place = np.arange(rows, dtype=np.int64) * size + start
    value = np.zeros(rows, np.int64)
    for byte in range((width + 14) // 8):
        value |= records[place // 8 + byte].astype(np.int64) << (8 * byte)
    return value >> place % 8 & (1 << width) - 1


def read_levels(path: Path) -> tuple[list[str], list[tuple]]:
    """Return the words, and of each order the n-grams (n-grams, order; ids of words, first word
    first), log10 probabilities and log10 back-off weights (None: highest order).
    """
    file = Bytes(path)
    if file.take(len(HEADER)).tobytes() != HEADER:
        raise UserError(f"{path}: no language model in CMU Sphinx's binary form")
    order = int(file.take(1)[0])
    *counts, _ = file.numbers(order + 1)
    tables = file.take(4 * BINS * (2 * order - 3)).view("<f4").reshape(-1, BINS) * LOG10
    unigrams = file.take(UNIGRAM.itemsize * (counts[0] + 1)).view(UNIGRAM)
    ngrams = np.arange(counts[0])[:, None]
    levels = [(ngrams, unigrams["prob"][:-1] * LOG10, unigrams["backoff"][:-1] * LOG10)]
    first, word_bits = unigrams["first"].astype(np.int64), counts[0].bit_length()
    for n in range(2, order + 1):
        # counts may be too high by some: what the order below points to is there
        rows, last = int(first[-1]), n == order
        first_bits = 0 if last else counts[n].bit_length()
        size = word_bits + (16 if last else 32) + first_bits
        records = file.take(((1 + counts[n - 1]) * size + 7) // 8 + 8)
        words = read_bits(records, 0, word_bits, rows, size)
        ngrams = np.column_stack([words, np.repeat(ngrams, np.diff(first), axis=0)])
        probs, *backoffs = tables[2 * n - 4 : 2 * n - 2]
        values = [
            read_bits(records, word_bits + k, 16, rows, size) for k in ((0,) if last else (16, 0))
        ]
        levels.append((ngrams, probs[values[0]], None if last else backoffs[0][values[1]]))
        if not last:
            first = read_bits(records, word_bits + 32, first_bits, rows + 1, size)
    names = file.take(*file.numbers(1)).tobytes().decode().split("\0")
    return names[: counts[0]], levels


def format_levels(names: list[str], levels: list[tuple]) -> Iterator[str]:
    """Yield the lines of the ARPA file."""
    yield "\\data\\"
    yield from (f"ngram {n}={len(level[0])}" for n, level in enumerate(levels, 1))
    for n, (ngrams, probs, backoffs) in enumerate(levels, 1):
        yield f"\n\\{n}-grams:"
        ends = [""] * len(probs) if backoffs is None else (f"\t{x:.4f}" for x in backoffs.tolist())
        for words, prob, end in zip(ngrams.tolist(), probs.tolist(), ends, strict=True):
            yield f"{prob:.4f}\t{' '.join(map(names.__getitem__, words))}{end}"
    yield "\n\\end\\"


if __name__ == "__main__":
    with exit_with_message():
        source, out = map(Path, sys.argv[1:])
        with atomic_text(out) as file:
            file.writelines(f"{line}\n" for line in format_levels(*read_levels(source)))
