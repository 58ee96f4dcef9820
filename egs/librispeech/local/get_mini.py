#!/usr/bin/env python3
"""get_mini.py MINI DIR: check a small corpus against its SHA256SUMS, if it has one, and unpack it
into DIR.

MINI holds train.txt and valid.txt (a sentence a line), dev.nbest.jsonl and test.nbest.jsonl, each
plain, .gz or .xz. Where it holds dev.lattices.tar.xz and test.lattices.tar.xz too, their files come
into DIR/lattices/dev and DIR/lattices/test.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "utils"))

from texts import check, unpack, unpack_tar

SETS = ("dev", "test")
FILES = ("train.txt", "valid.txt", "dev.nbest.jsonl", "test.nbest.jsonl")


if __name__ == "__main__":
    mini, out = map(Path, sys.argv[1:])
    check(mini)
    unpack(mini, FILES, out)
    for name in SETS:
        if (mini / f"{name}.lattices.tar.xz").exists():
            unpack_tar(mini / f"{name}.lattices.tar.xz", out / "lattices" / name)
