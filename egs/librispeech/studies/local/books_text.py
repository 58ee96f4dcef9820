#!/usr/bin/env python3
"""books_text.py OUT VALID SIZES LEAVE_OUT SPELLINGS FILE...: the lines of books, shuffled, as
OUT/valid.txt (the first VALID), OUT/train.txt (the others), and for each of SIZES, as 3M,
OUT/train-3M.txt: the first sentences of train.txt with so many words.

LEAVE_OUT has NAME:FIRST-LAST for lines of the file that begins with NAME, counted from 1: what the
test set says. Empty lines are left out too. The file SPELLINGS has the words that are written in
another way, as studies/conf/titles.txt.
"""

import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError, exit_with_message
from lmtools.base.files import read_lines
from lmtools.formats.edits import read_spellings, spell

SEED = 1
UNITS = {"": 1, "K": 1_000, "M": 1_000_000}


def main(out: Path, valid: int, sizes: str, leave_out: str, spellings: str, *files: str) -> None:
    """Read all, shuffle, write."""
    held = [parse_range(text) for text in leave_out.split()]
    words = read_spellings(spellings)
    lines = [spell(line, words) for path in files for line in keep_lines(path, held)]
    random.Random(SEED).shuffle(lines)
    write(out / "valid.txt", lines[:valid])
    write(out / "train.txt", lines[valid:])
    for size in sizes.split():
        write(out / f"train-{size}.txt", take_words(lines[valid:], parse_size(size)))


def parse_range(text: str) -> tuple[str, range]:
    """Return the file's beginning and the lines of NAME:FIRST-LAST."""
    if not (match := re.fullmatch(r"([^:]+):([0-9]+)-([0-9]+)", text)):
        raise UserError(f"--leave-out {text}: not NAME:FIRST-LAST, as in books-b:10-20")
    return match[1], range(int(match[2]), int(match[3]) + 1)


def parse_size(text: str) -> int:
    """Return how many words 300K or 3M are."""
    if not (match := re.fullmatch(r"([0-9]+)([KM]?)", text)):
        raise UserError(f"--sizes {text}: not a number of words, as in 300K or 3M")
    return int(match[1]) * UNITS[match[2]]


def keep_lines(path: str, held: list[tuple[str, range]]) -> Iterator[str]:
    """Yield the lines of a file that are not empty and not held out."""
    ranges = [lines for name, lines in held if Path(path).name.startswith(name)]
    for number, line in read_lines(path):
        if line.strip() and not any(number in lines for lines in ranges):
            yield line


def take_words(lines: list[str], count: int) -> Iterator[str]:
    """Yield the first lines that have `count` words or, with the last one, a little more."""
    for line in lines:
        if count <= 0:
            return
        count -= len(line.split())
        yield line


def write(path: Path, lines) -> None:
    """Write a line each."""
    with atomic_text(path) as text:
        text.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    out, valid, *rest = sys.argv[1:]
    with exit_with_message():
        main(Path(out), int(valid), *rest)
