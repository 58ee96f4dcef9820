#!/usr/bin/env python3
"""get_mini.py MINI PAIR DIR: check a small corpus against its SHA256SUMS, if it has one, and unpack
a language pair of it into DIR.

MINI holds train.txt and valid.txt (English, a sentence a line), PAIR.dev.nbest.jsonl and
PAIR.test.nbest.jsonl, each plain, .gz or .xz.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "utils"))

from texts import check, unpack

if __name__ == "__main__":
    mini, pair, out = sys.argv[1:]
    check(Path(mini))
    unpack(
        Path(mini),
        ("train.txt", "valid.txt", f"{pair}.dev.nbest.jsonl", f"{pair}.test.nbest.jsonl"),
        Path(out),
    )
