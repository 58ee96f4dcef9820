#!/usr/bin/env python3
"""surface.py length|overlap PAIRS.tsv OUT.json: how far people's judgements go with what can be
seen without a model, in the form of `lmtools sts --out`.

length: words of the shorter sentence over words of the longer one; overlap: distinct words that
both have over distinct words that either has (Jaccard). Words are in lower case, without
punctuation.
"""

import sys
from pathlib import Path

import numpy as np

from lmtools.base.errors import UserError, exit_with_message
from lmtools.base.files import sha256
from lmtools.base.seal import write_json
from lmtools.text import NORMALISERS
from lmtools.vectors import pairs
from lmtools.vectors.similarity import pearson, spearman


def compare_lengths(left: list[str], right: list[str]) -> float:
    """Return the length of the shorter over that of the longer."""
    short, long = sorted((len(left), len(right)))
    return short / long if long else 1.0


def share_words(left: list[str], right: list[str]) -> float:
    """Return Jaccard's index of the sets of words."""
    either = {*left, *right}
    return len({*left} & {*right}) / len(either) if either else 1.0


WAYS = {"length": compare_lengths, "overlap": share_words}


def main(name: str, path: Path, out: Path) -> None:
    """Write the values and their correlations, and print these."""
    if name not in WAYS:
        raise UserError(f"{name}: no such way; give one of {', '.join(WAYS)}")
    given, normalise = list(pairs.read(path, None)), NORMALISERS["librispeech"]
    gold = np.array([pair.similarity for pair in given])
    split = [[normalise(text).split() for text in (pair.left, pair.right)] for pair in given]
    values = np.array([WAYS[name](left, right) for left, right in split])
    row = {"layer": 0, "pearson": list(pearson(gold, values))}
    row |= {"spearman": list(spearman(gold, values)), "cosine": values.tolist()}
    tree = {"pairs": str(path), "sha256": sha256(path), "count": len(given)}
    tree |= {"signature": {"lm": name}, "similarity": gold.tolist(), "rows": [row]}
    write_json(tree, out, indent=None)
    print(f"{name}: pearson {row['pearson'][0] * 100:.2f} ({len(given):,} pairs)")


if __name__ == "__main__":
    with exit_with_message():
        main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
