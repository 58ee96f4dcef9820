#!/usr/bin/env python3
"""get_mini.py MINI DIR: check a small corpus against its SHA256SUMS, if it has one, and unpack it into DIR.

MINI holds train.txt and valid.txt (a sentence a line), dev.nbest.jsonl and test.nbest.jsonl, each plain, .gz or .xz. Where it holds
dev.lattices.tar.xz and test.lattices.tar.xz too, their files come into DIR/lattices/dev and DIR/lattices/test.
"""

import gzip
import hashlib
import lzma
import os
import shutil
import sys
import tarfile
from pathlib import Path

SETS = ("dev", "test")
FILES = ("train.txt", "valid.txt", "dev.nbest.jsonl", "test.nbest.jsonl")
OPENERS = {"": open, ".gz": gzip.open, ".xz": lzma.open}


def check(mini: Path):
    """SystemExit if a file of SHA256SUMS is missing or differs."""
    sums = mini / "SHA256SUMS"
    for line in sums.read_text().splitlines() if sums.exists() else ():
        expected, name = line.split(maxsplit=1)
        path = mini / name.lstrip("*")
        if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            sys.exit(f"{path}: missing, or not what {sums} says; restore it from the repository")


def unpack(mini: Path, name: str, out: Path):
    """The file `name` of the corpus, decompressed into the directory `out`, whole or not at all."""
    found = [(mini / f"{name}{suffix}", opener) for suffix, opener in OPENERS.items() if (mini / f"{name}{suffix}").exists()]
    if not found:
        sys.exit(f"{mini / name}: neither it nor {name}.gz or {name}.xz is there; give a directory with {', '.join(FILES)}")
    path, opener = found[0]
    temporary = out / f"{name}.tmp"
    with opener(path, "rb") as packed, open(temporary, "wb") as plain:
        shutil.copyfileobj(packed, plain)
    os.replace(temporary, out / name)


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
    out.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        unpack(mini, name, out)
    for name in SETS:
        if (mini / f"{name}.lattices.tar.xz").exists():
            unpack_lattices(mini / f"{name}.lattices.tar.xz", out / "lattices" / name)
