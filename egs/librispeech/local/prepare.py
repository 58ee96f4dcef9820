#!/usr/bin/env python3
"""prepare.py CORPUS RAW DATA: from what stage 0 got to DATA/{train,valid}/text, a sentence a line,
of RAW/{train,valid}.txt if they are there, and DATA/SET/text, Kaldi text, of each RAW/SET.text.

Words stay as they are: the normaliser that goes with each language model adapts them.
"""

import gzip
import sys
from pathlib import Path

from lmtools.atomic import atomic_binary, copy_file
from lmtools.errors import exit_with_message

# full: of so many lines of LM text one is kept for validation (2,000 of 40 million)
VALID_EVERY = 20_000


def split_text(source: Path, data: Path):
    """LibriSpeech's LM text split into training and validation, streaming."""
    with (
        gzip.open(source, "rb") as lines,
        atomic_binary(data / "train" / "text") as train,
        atomic_binary(data / "valid" / "text") as valid,
    ):
        for number, line in enumerate(lines, 1):
            (valid if number % VALID_EVERY == 1 else train).write(line)


if __name__ == "__main__":
    corpus, raw, data = sys.argv[1], *map(Path, sys.argv[2:])
    with exit_with_message():
        if corpus == "full":
            split_text(raw / "librispeech-lm-norm.txt.gz", data)
        for path in sorted((*raw.glob("*.txt"), *raw.glob("*.text"))):
            copy_file(path, data / path.stem / "text")
