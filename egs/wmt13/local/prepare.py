#!/usr/bin/env python3
"""English text, bilingual text, and the source sentences of lists.

prepare.py copy OUT TRAIN VALID: the texts as they are, as OUT/train.txt and OUT/valid.txt.
prepare.py split OUT DEV TEST FILE.gz...: of every VALID_EVERY lines of the files one into
    OUT/valid.txt, the others into OUT/train.txt, without those that DEV or TEST, the references,
    have too.
prepare.py pairs PAIRS.tsv FOREIGN ENGLISH: both sides of PAIRS, a sentence a line.
prepare.py lines LISTS.jsonl FOREIGN ENGLISH: source and reference of each list, a sentence a line.
prepare.py sources LISTS.jsonl OUT [FOREIGN]: the source of each list as Kaldi text: a line of
    FOREIGN, in the lists' order, or what the list itself has.
"""

import gzip
import sys
import zlib
from pathlib import Path

from lmtools.atomic import atomic_binary, atomic_text, copy_file
from lmtools.errors import UserError, exit_with_message
from lmtools.files import read_lines
from lmtools.formats import jsonl, kaldi_text, plain
from lmtools.formats.lists import other_number
from lmtools.types import NBest

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


def pairs(tsv: Path, foreign: Path, english: Path) -> None:
    """Both sides of bilingual text; UserError for a line that is no pair."""
    with atomic_text(foreign) as sources, atomic_text(english) as targets:
        for number, line in read_lines(tsv):
            sides = [" ".join(side.split()) for side in line.split("\t")]
            if len(sides) != 2 or not all(sides):
                raise UserError(
                    f"{tsv}:{number}: not a foreign sentence, a tab and an English one; write it so"
                )
            sources.write(f"{sides[0]}\n")
            targets.write(f"{sides[1]}\n")


def lines(lists: Path, foreign: Path, english: Path) -> None:
    """What a translator is given, and its references; UserError where a list lacks either."""
    with atomic_text(foreign) as sources, atomic_text(english) as refs:
        for nbest in jsonl.read(lists):
            if nbest.ref is None:
                raise UserError(f'{lists}: utterance {nbest.utt!r} has no reference; add "ref"')
            sources.write(f"{source_of(nbest, lists)}\n")
            refs.write(f"{' '.join(nbest.ref.split())}\n")


def sources(lists: Path, out: Path, foreign: Path | None = None) -> None:
    """The sources of lists by utterance; UserError where one has none."""
    nbests = list(jsonl.read(lists))
    if foreign:
        found = plain.read(foreign)
        if len(found) != len(nbests):
            raise other_number(foreign, len(found), f"{len(nbests)} lists", lists)
    else:
        found = [source_of(nbest, lists) for nbest in nbests]
    kaldi_text.write({nbest.utt: text for nbest, text in zip(nbests, found, strict=True)}, out)


def source_of(nbest: NBest, lists: Path) -> str:
    """What a list is the translation of, by its own `extra`."""
    if not (text := " ".join(nbest.extra.get("source", "").split())):
        raise UserError(
            f"{lists}: utterance {nbest.utt!r} has no source, which translators score by; add"
            ' "extra": {"source": "..."}, or run with --translators none'
        )
    return text


VERBS = {"copy": copied, "split": split, "pairs": pairs, "lines": lines, "sources": sources}

if __name__ == "__main__":
    verb, *paths = sys.argv[1:]
    with exit_with_message():
        VERBS[verb](*map(Path, paths))
