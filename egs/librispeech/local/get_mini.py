#!/usr/bin/env python3
"""get_mini.py MINI DIR: check a small corpus against its SHA256SUMS, if it has one, and unpack it into DIR.

MINI holds train.txt and valid.txt (a sentence a line), dev.nbest.jsonl and test.nbest.jsonl, each plain, .gz or .xz. Where it holds
dev.lattices.tar.xz and test.lattices.tar.xz too, their files come into DIR/lattices/dev and DIR/lattices/test.
"""

import os
import shutil
import sys
import tarfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "utils"))

from texts import check, unpack

SETS = ("dev", "test")
FILES = ("train.txt", "valid.txt", "dev.nbest.jsonl", "test.nbest.jsonl")


def unpack_lattices(archive: Path, out: Path):
    """The regular files of a tar archive in the directory `out`, whole or not at all; folders inside the archive are left out."""
    temporary = out.with_name(f"{out.name}.tmp")
    for old in (temporary, out):
        shutil.rmtree(old, ignore_errors=True)
    temporary.mkdir(parents=True)
    with tarfile.open(archive) as packed:
        for member in packed:
            if member.isfile():
                (temporary / Path(member.name).name).write_bytes(packed.extractfile(member).read())
    os.replace(temporary, out)


if __name__ == "__main__":
    mini, out = map(Path, sys.argv[1:])
    check(mini)
    unpack(mini, FILES, out)
    for name in SETS:
        if (mini / f"{name}.lattices.tar.xz").exists():
            unpack_lattices(mini / f"{name}.lattices.tar.xz", out / "lattices" / name)
