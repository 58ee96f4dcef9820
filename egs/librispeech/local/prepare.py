#!/usr/bin/env python3
"""prepare.py mini|full|swbd RAW DATA: from what stage 0 got to DATA/{train,valid}/text, a sentence
a line, and DATA/SET/text, Kaldi text.

Words stay as they are: the normaliser that goes with each language model adapts them.
"""

import gzip
import sys
from pathlib import Path

from lmtools.atomic import atomic_binary, copy_file
from lmtools.errors import exit_with_message

# full: of so many lines of LM text one is kept for validation (2,000 of 40 million)
VALID_EVERY = 20_000


def mini(raw: Path, data: Path):
    """The embedded corpus: its text as it is; its references are in its N-best lists."""
    for part in ("train", "valid"):
        copy_file(raw / f"{part}.txt", data / part / "text")


def full(raw: Path, data: Path):
    """LibriSpeech: LM text split into training and validation, streaming; transcripts as they
    are.
    """
    with (
        gzip.open(raw / "librispeech-lm-norm.txt.gz", "rb") as lines,
        atomic_binary(data / "train" / "text") as train,
        atomic_binary(data / "valid" / "text") as valid,
    ):
        for number, line in enumerate(lines, 1):
            (valid if number % VALID_EVERY == 1 else train).write(line)
    for path in sorted(raw.glob("*.text")):
        copy_file(path, data / path.stem / "text")


def swbd(raw: Path, data: Path):
    """Switchboard: text as stage 0 cleaned it, references as they are."""
    for part in ("train", "valid"):
        copy_file(raw / f"{part}.txt", data / part / "text")
    for path in sorted(raw.glob("*.text")):
        copy_file(path, data / path.stem / "text")


if __name__ == "__main__":
    corpus, raw, data = sys.argv[1:]
    with exit_with_message():
        {"mini": mini, "full": full, "swbd": swbd}[corpus](Path(raw), Path(data))
