#!/usr/bin/env python3
"""random_vectors.py SEED TEXT OUT: a random vector for each word of a text, in word2vec's text
form, for `lmtools embed --lm words:OUT`.

The mean of such vectors says which words a sentence has and nothing of what they mean: the control
of word vectors that were learnt, and of untrained LMs.
"""

import sys
from pathlib import Path

import numpy as np

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import exit_with_message
from lmtools.base.files import read_lines
from lmtools.text import NORMALISERS

DIM = 256


def main(seed: int, text: Path, out: Path) -> None:
    """Write a vector of standard normal values for each word, words in alphabetical order."""
    normalise = NORMALISERS["librispeech"]
    words = sorted({word for _, line in read_lines(text) for word in normalise(line).split()})
    draw = np.random.default_rng(seed).standard_normal
    with atomic_text(out) as stream:
        stream.write(f"{len(words)} {DIM}\n")
        for word in words:
            stream.write(f"{word} {' '.join(f'{value:.3f}' for value in draw(DIM))}\n")


if __name__ == "__main__":
    with exit_with_message():
        main(int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
