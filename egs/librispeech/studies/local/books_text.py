#!/usr/bin/env python3
"""books_text.py OUT VALID SIZES SETS SPELLINGS FILE...: the lines of books, shuffled, as
OUT/valid.txt (VALID of them), OUT/train.txt, and for each of SIZES, as 3M, OUT/train-3M.txt: the
first sentences of train.txt with so many words.

Books are parted by empty lines. Those of valid.txt are in no other text. SETS are N-best lists,
directories of them, or texts that models will be judged by: no line is left that shares seven words
in a row or a sentence with their references, and no book with more than 20 such lines, which they
were read from. The file SPELLINGS has the words that are written in another way, as
studies/conf/titles.txt.
"""

import random
import re
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError, exit_with_message
from lmtools.base.files import read_lines
from lmtools.formats.edits import read_spellings, spell
from lmtools.text.overlap import JudgedSentences
from lmtools.verbs.corpus import print_overlap, read_sentences

SEED = 1
UNITS = {"": 1, "K": 1_000, "M": 1_000_000}
MOST_SHARED = 20  # lines of a book that share words by chance; one that was read aloud has more
HELD_OUT = 5  # books that give lines to valid.txt, or one in ten of fewer


def main(out: Path, valid: int, sizes: str, sets: str, spellings: str, *files: str) -> None:
    """Read all, take out what is judged, hold books out, shuffle, write."""
    write_out = partial(spell, spellings=read_spellings(spellings))
    judged = JudgedSentences({path: read_sentences(path) for path in list_sets(sets)})
    overlap = judged.find_in(files, write_out)
    print_overlap(overlap)
    books = [
        [write_out(line) for line in lines]
        for path in files
        for lines in drop_shared(cut_books(path), overlap.lines[path], path)
    ]
    train, held_out = hold_out(books, valid, random.Random(SEED))
    random.Random(SEED).shuffle(train)
    write(out / "valid.txt", held_out)
    write(out / "train.txt", train)
    for size in sizes.split():
        write(out / f"train-{size}.txt", take_words(train, parse_size(size)))


def list_sets(sets: str) -> Iterator[str]:
    """Yield the files of SETS, and the lists in its directories."""
    for path in map(Path, sets.split()):
        yield from map(str, sorted(path.rglob("*.jsonl*")) if path.is_dir() else [path])


def cut_books(path: str) -> Iterator[list[tuple[int, str]]]:
    """Yield the numbered lines of each book."""
    book: list[tuple[int, str]] = []
    for number, line in read_lines(path):
        if line.strip():
            book.append((number, line))
        elif book:
            yield book
            book = []
    if book:
        yield book


def drop_shared(
    books: Iterable[list[tuple[int, str]]], shared: set[int], path: str
) -> Iterator[list[str]]:
    """Yield the lines of each book that are not `shared`; no book that has too many of those."""
    for book in books:
        kept = [line for number, line in book if number not in shared]
        if len(book) - len(kept) > MOST_SHARED:
            first, last, lines = book[0][0], book[-1][0], len(book) - len(kept)
            print(f"{path}:{first}-{last}: a book that shares {lines} lines, left out")
        elif kept:
            yield kept


def hold_out(
    books: list[list[str]], valid: int, draw: random.Random
) -> tuple[list[str], list[str]]:
    """Return the lines of training, and `valid` lines of books that are not in training."""
    order = draw.sample(range(len(books)), len(books))
    each = -(-valid // max(1, min(HELD_OUT, len(books) // 10)))
    held_out: list[str] = []
    for taken, place in enumerate(order, 1):
        held_out += books[place][: min(each, valid - len(held_out))]
        if len(held_out) == valid and taken < len(order):
            rest = sorted(order[taken:])
            return [line for place in rest for line in books[place]], held_out
    raise UserError(
        f"{len(books)} books: no book is left to train on beside {valid} sentences held out; give"
        " more, parted by empty lines, or a smaller --valid"
    )


def parse_size(text: str) -> int:
    """Return how many words 300K or 3M are."""
    if not (match := re.fullmatch(r"([0-9]+)([KM]?)", text)):
        raise UserError(f"--sizes {text}: not a number of words, as in 300K or 3M")
    return int(match[1]) * UNITS[match[2]]


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
