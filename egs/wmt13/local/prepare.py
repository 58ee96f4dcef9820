#!/usr/bin/env python3
"""English text, a sentence a line, and references.

prepare.py copy OUT TRAIN VALID: the texts as they are, as OUT/train.txt and
OUT/valid.txt. prepare.py split OUT DEV TEST FILE.gz...: of every VALID_EVERY lines of the files one
into OUT/valid.txt, the others into OUT/train.txt,
    without those that DEV or TEST, the references, have too.
"""

import gzip
import sys
import zlib
from pathlib import Path

from lmtools.atomic import atomic_binary, copy_file
from lmtools.errors import UserError, exit_with_message

VALID_EVERY = 5_000  # about 3,000 lines of a year of news


def copied(out: Path, train: Path, valid: Path) -> None:
    """Both texts as they are."""
    copy_file(train, out / "train.txt")
    copy_file(valid, out / "valid.txt")


def split(out: Path, dev: Path, test: Path, *files: Path) -> None:
    """Training and validation text out of compressed files, streaming; UserError if one is
    damaged.
    """
    hidden = {line.strip() for path in (dev, test) for line in path.read_bytes().splitlines()}
    number = 0
    with atomic_binary(out / "train.txt") as train, atomic_binary(out / "valid.txt") as valid:
        for path in files:
            try:
                with gzip.open(path, "rb") as lines:
                    for line in lines:
                        if line.strip() and line.strip() not in hidden:
                            (train if number % VALID_EVERY else valid).write(
                                line.rstrip(b"\r\n") + b"\n"
                            )
                            number += 1
            except (EOFError, OSError, zlib.error) as error:
                raise UserError(
                    f"{path}: damaged archive ({error}); remove it and {path.name}.sha256, and run"
                    " stage 0 again"
                ) from None


VERBS = {"copy": copied, "split": split}

if __name__ == "__main__":
    verb, *paths = sys.argv[1:]
    with exit_with_message():
        VERBS[verb](*map(Path, paths))
