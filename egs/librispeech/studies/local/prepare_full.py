#!/usr/bin/env python3
"""prepare_full.py RAW DATA: LibriSpeech's LM text in RAW to DATA/train/text and DATA/valid/text, a
sentence a line, and each RAW/SET.text to DATA/SET/text.

Words stay as they are: the normaliser that goes with each language model adapts them.
"""

import gzip
import sys
from pathlib import Path

from lmtools.base.atomic import atomic_binary, copy_file
from lmtools.base.errors import exit_with_message

# of so many lines of LM text one is kept for validation (2,000 of 40 million)
VALID_EVERY = 20_000


def split_text(source: Path, data: Path) -> None:
    """Split the LM text into training and validation, streaming."""
    with (
        gzip.open(source, "rb") as lines,
        atomic_binary(data / "train" / "text") as train,
        atomic_binary(data / "valid" / "text") as valid,
    ):
        for number, line in enumerate(lines, 1):
            (valid if number % VALID_EVERY == 1 else train).write(line)


def main(raw: Path, data: Path) -> None:
    """Write all texts."""
    split_text(raw / "librispeech-lm-norm.txt.gz", data)
    for path in sorted(raw.glob("*.text")):
        copy_file(path, data / path.stem / "text")


if __name__ == "__main__":
    with exit_with_message():
        main(*map(Path, sys.argv[1:]))
