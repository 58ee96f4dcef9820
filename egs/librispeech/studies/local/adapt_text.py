#!/usr/bin/env python3
"""adapt_text.py general OUT PLACE: lines of general text as OUT/train-general.txt, and 1,000 of the
first 20,000 each as valid-general.txt and test-general.txt.

adapt_text.py domain OUT PLACE SIZE...: for each SIZE so many lines of the domain's text, or `all`,
as OUT/train-SIZE.txt and OUT/valid-SIZE.txt, which has one of ten, at most 500. A smaller size is
a part of a larger one. PLACE is a file or a directory of them; empty lines are left out.
"""

import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError, exit_with_message
from lmtools.base.files import read_lines

SEED = 1
GENERAL = ["train"] * 9 + ["valid"] + ["train"] * 9 + ["test"]  # what 20 lines become
EACH = 1000  # lines of general text that are held out for validation, and for the test
HELD, MOST = 10, 500  # one line of so many of the domain's is held out, and not more than so many


def main(kind: str, out: str, place: str, *sizes: str) -> None:
    """Write one of both."""
    write = {"general": split_general, "domain": split_domain}[kind]
    write(Path(out), place, *sizes)


def keep_lines(place: str) -> Iterator[str]:
    """Return the lines of a file, or of a directory's files in order of name, that are not
    empty.
    """
    path = Path(place)
    files = sorted(path.glob("*.txt*")) if path.is_dir() else [path]
    if not files:
        raise UserError(f"{place}: no FILE.txt, FILE.txt.gz or FILE.txt.xz; put the text there")
    return (line for file in files for _, line in read_lines(file) if line.strip())


def split_general(out: Path, place: str) -> None:
    """Stream the general text into three files."""
    count = dict.fromkeys(GENERAL, 0)
    with ExitStack() as files:
        text = {
            part: files.enter_context(atomic_text(out / f"{part}-general.txt")) for part in count
        }
        for line, part in zip(keep_lines(place), cycle(GENERAL), strict=False):
            part = "train" if count[part] == EACH else part
            count[part] += part != "train"
            text[part].write(f"{line}\n")
        if not count["test"]:
            raise UserError(f"{place}: {len(GENERAL)} lines are the least; give more text")


def split_domain(out: Path, place: str, *sizes: str) -> None:
    """Shuffle the domain's text and write its first lines."""
    lines = list(keep_lines(place))
    random.Random(SEED).shuffle(lines)
    for size in sizes:
        count = len(lines) if size == "all" else int(size) if size.isdecimal() else 0
        if not HELD <= count <= len(lines):
            raise UserError(
                f"--lines {size}: {place} has {len(lines)} lines; give all, or {HELD} and more"
            )
        every = range(HELD - 1, min(count, HELD * MOST), HELD)
        write(out / f"valid-{size}.txt", (lines[i] for i in every))
        write(out / f"train-{size}.txt", (lines[i] for i in range(count) if i not in every))


def write(path: Path, lines: Iterable[str]) -> None:
    """Write a line each."""
    with atomic_text(path) as text:
        text.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
