#!/usr/bin/env python3
"""get_mini.py MINI DIR: check a small corpus against its SHA256SUMS, if it has them, and unpack its
train.txt and valid.txt into DIR.

MINI holds both, a sentence a line, each plain, .gz or .xz: egs/librispeech/mini, whose text is a
public-domain Bible, or your own.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "utils"))

from texts import check, unpack

if __name__ == "__main__":
    mini, out = map(Path, sys.argv[1:])
    check(mini)
    unpack(mini, ("train.txt", "valid.txt"), out)
