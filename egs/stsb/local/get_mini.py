#!/usr/bin/env python3
"""get_mini.py DIRECTORY OUT NAME...: check a small corpus against its SHA256SUMS, if it has one,
and unpack files of it into OUT.

DIRECTORY holds each NAME plain, .gz or .xz.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "utils"))

from texts import check, unpack

if __name__ == "__main__":
    mini, out, *names = sys.argv[1:]
    check(Path(mini))
    unpack(Path(mini), names, Path(out))
