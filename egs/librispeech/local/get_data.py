#!/usr/bin/env python3
"""get_data.py CORPUS OUT: make the four files that all later stages start from: OUT/train.txt and
OUT/valid.txt, a sentence a line; OUT/dev.nbest.jsonl and OUT/test.nbest.jsonl, lists with
references (lmtools/formats/jsonl.py).

Nothing else knows what CORPUS looks like: here it is a directory that has these files, plain, .gz
or .xz. For a corpus in another form edit `get_data`.
"""

import sys
from pathlib import Path

from lmtools.base.errors import exit_with_message

sys.path.append(str(Path(__file__).resolve().parents[3] / "utils"))

from unpack import main as unpack

FILES = ("train.txt", "valid.txt", "dev.nbest.jsonl", "test.nbest.jsonl")


def get_data(corpus: Path, out: Path) -> None:
    """Write the files; UserError if one is not there, or not what SHA256SUMS says."""
    unpack(corpus, out, *FILES)


if __name__ == "__main__":
    with exit_with_message():
        get_data(*map(Path, sys.argv[1:]))
