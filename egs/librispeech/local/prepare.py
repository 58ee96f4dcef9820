#!/usr/bin/env python3
"""prepare.py mini|full|swbd RAW DATA: from what stage 0 got to DATA/{train,valid}/text, a sentence
a line, and DATA/SET/text, Kaldi text.

Words stay as they are: the normaliser that goes with each language model adapts them.
"""

import gzip
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "utils"))

from texts import copy, references, written

# full: of so many lines of LM text one is kept for validation (2,000 of 40 million)
VALID_EVERY = 20_000


def mini(raw: Path, data: Path):
    """The embedded corpus: its text as it is, the references out of its N-best lists."""
    for part in ("train", "valid"):
        copy(raw / f"{part}.txt", data / part / "text")
    for part in ("dev", "test"):
        references(raw / f"{part}.nbest.jsonl", data / part / "text")


def full(raw: Path, data: Path):
    """LibriSpeech: LM text split into training and validation, streaming; transcripts as they
    are.
    """
    with (
        gzip.open(raw / "librispeech-lm-norm.txt.gz", "rb") as lines,
        written(data / "train" / "text") as train,
        written(data / "valid" / "text") as valid,
    ):
        for number, line in enumerate(lines, 1):
            (valid if number % VALID_EVERY == 1 else train).write(line)
    for path in sorted(raw.glob("*.text")):
        copy(path, data / path.stem / "text")


def swbd(raw: Path, data: Path):
    """Switchboard: text as stage 0 cleaned it, references as they are."""
    for part in ("train", "valid"):
        copy(raw / f"{part}.txt", data / part / "text")
    for path in sorted(raw.glob("*.text")):
        copy(path, data / path.stem / "text")


if __name__ == "__main__":
    corpus, raw, data = sys.argv[1:]
    {"mini": mini, "full": full, "swbd": swbd}[corpus](Path(raw), Path(data))
