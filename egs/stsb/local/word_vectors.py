#!/usr/bin/env python3
"""word_vectors.py --text F --out F.txt: static word vectors of a text, so that a baseline has read
what the language models have.

The matrix of positive pointwise mutual information of words and the words around them, contexts'
probabilities raised to 0.75, is cut to its --dim greatest singular values, and a word's vector is
its row of U times the root of these (Levy and Goldberg 2014; Levy, Goldberg and Dagan 2015). A
context is a word of the same line at most --window places away; words that come less than
--min-count times are taken out before places are counted, as word2vec does. Words are those of
`lmtools embed --lm words:F.txt`: in lower case, without punctuation. The file is in word2vec's text
form, words by falling frequency. Equal texts give equal bytes on one machine.
"""

import argparse
import itertools
import sys
from array import array
from collections import defaultdict

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.linalg import svds

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.text import NORMALISERS

SMOOTHING = 0.75  # power of the contexts' distribution: rare contexts lose weight
WEIGHTING = 0.5  # power of the singular values
DIGITS = 5


def main() -> None:
    args = arguments()
    words, ids, lines = frequent(args.text, args.min_count)
    if len(words) <= args.dim:
        few = f"{len(words)} words come {args.min_count} times or more"
        raise UserError(
            f"{args.text}: {few}, too few for vectors of {args.dim}; give more text or a smaller"
            " --dim or --min-count"
        )
    information = ppmi(cooccurrences(ids, lines, len(words), args.window))
    if not information.nnz:
        raise UserError(f"{args.text}: no word tells of another; give lines of several words")
    vectors = reduced(information, args.dim)
    with atomic_text(args.out) as stream:
        stream.write(f"{len(words)} {args.dim}\n")
        for word, row in zip(words, vectors.tolist(), strict=True):
            stream.write(f"{word} {' '.join(f'{value:.{DIGITS}g}' for value in row)}\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument(
        "--text", required=True, metavar="F", help="a sentence a line; plain, .gz or .xz"
    )
    parser.add_argument("--out", required=True, metavar="F.txt")
    parser.add_argument("--dim", type=positive, default=100, metavar="N", help="values of a vector")
    parser.add_argument(
        "--min-count", type=positive, default=3, metavar="N", help="rarer words get no vector"
    )
    parser.add_argument(
        "--window",
        type=positive,
        default=5,
        metavar="N",
        help="words on each side that are a word's contexts",
    )
    return parser.parse_args()


def positive(text: str) -> int:
    """Return a number from 1, for argparse."""
    if (value := int(text)) < 1:
        raise ValueError
    return value


def frequent(path: str, min_count: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return words that come often enough, by falling frequency; the text's ids of these, int32
    (tokens,), and the line of each.
    """
    numbers: dict[str, int] = defaultdict(itertools.count().__next__)
    ids, lengths = array("i"), array("i")
    for _, line in read_lines(path):
        words = NORMALISERS["librispeech"](line).split()
        ids.extend(map(numbers.__getitem__, words))
        lengths.append(len(words))
    tokens = np.frombuffer(ids, dtype=np.int32) if ids else np.zeros(0, dtype=np.int32)
    counts = np.bincount(tokens, minlength=len(numbers))
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] >= min_count]  # of equal counts the first in the text
    renumbered = np.full(len(numbers), -1, dtype=np.int32)
    renumbered[order] = np.arange(len(order))
    known = list(numbers)
    tokens = renumbered[tokens]
    places = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    return [known[i] for i in order], tokens[tokens >= 0], places[tokens >= 0]


def cooccurrences(ids: np.ndarray, lines: np.ndarray, size: int, window: int) -> csr_array:
    """Return how often each word (row) has each other (column) at most `window` places before or
    after it in its line; (size, size).
    """
    after = csr_array((size, size), dtype=np.int64)
    for offset in range(1, window + 1):
        near = lines[:-offset] == lines[offset:]
        rows, columns = ids[:-offset][near], ids[offset:][near]
        after = (
            after
            + coo_array(
                (np.ones(len(rows), dtype=np.int64), (rows, columns)), shape=(size, size)
            ).tocsr()
        )
    return (after + after.T).tocsr()


def ppmi(counts: csr_array) -> csr_array:
    """Return max(0, ln p(word, context) / (p(word) p(context))), p(context) of the counts to the
    power of 0.75; (size, size), float64.
    """
    totals = counts.sum(axis=1).astype(np.float64)  # of rows and of columns: counts are symmetric
    smoothed = totals**SMOOTHING
    pairs = counts.tocoo()
    rows, columns = pairs.coords
    values = np.maximum(
        0.0, np.log(pairs.data * smoothed.sum() / (totals[rows] * smoothed[columns]))
    )
    result = coo_array((values, (rows, columns)), shape=counts.shape).tocsr()
    result.eliminate_zeros()
    return result


def reduced(matrix: csr_array, dim: int) -> np.ndarray:
    """Return rows of U times the singular values to the power of 0.5, greatest first; float64
    (size, dim).
    """
    # a fixed one, for equal bytes
    start = np.random.default_rng(1).standard_normal(matrix.shape[0])
    left, values, _ = svds(matrix, k=dim, v0=start)
    order = np.argsort(-values, kind="stable")
    left, values = left[:, order], np.maximum(values[order], 0.0)
    # a singular vector's sign is the solver's whim
    signs = np.sign(left[np.argmax(np.abs(left), axis=0), np.arange(dim)])
    return left * signs * values**WEIGHTING


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"word_vectors.py: {error}")
