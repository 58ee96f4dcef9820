#!/usr/bin/env python3
"""English text, bilingual text, and the source sentences of lists.

prepare.py split OUT RAW PAIR FILE.gz...: of every VALID_EVERY lines of the files, which are in RAW,
    one into OUT/valid.txt, the others into OUT/train.txt, without those that a reference,
    RAW/PAIR.{dev,test}.english, has too.
prepare.py pairs PAIRS.tsv FOREIGN ENGLISH: both sides of PAIRS, a sentence a line.
prepare.py sources LISTS.jsonl OUT [FOREIGN]: the source of each list as Kaldi text: a line of
    FOREIGN, in the lists' order, or what the list itself has; lists without one are left out.
prepare.py number FILE OUT: plain lines as Kaldi text, with their numbers as ids.
"""

import gzip
import sys
import zlib
from pathlib import Path

from lmtools.base.atomic import atomic_binary, atomic_text
from lmtools.base.errors import UserError, exit_with_message
from lmtools.base.files import read_lines
from lmtools.formats import jsonl, kaldi_text
from lmtools.formats.lists import other_number
from lmtools.formats.texts import read_sentences

VALID_EVERY = 5_000  # about 3,000 lines of a year of news


def split(out: str, raw: str, pair: str, *files: str) -> None:
    """Write training and validation text out of compressed files, streaming; UserError if one is
    damaged.
    """
    refs = [Path(raw, f"{pair}.{part}.english") for part in ("dev", "test")]
    hidden = {line.strip() for path in refs for line in path.read_bytes().splitlines()}
    number = 0
    with (
        atomic_binary(Path(out, "train.txt")) as train,
        atomic_binary(Path(out, "valid.txt")) as valid,
    ):
        for path in (Path(raw, name) for name in files):
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


def pairs(tsv: str, foreign: str, english: str) -> None:
    """Write both sides of bilingual text; UserError for a line that is no pair."""
    with atomic_text(foreign) as sources, atomic_text(english) as targets:
        for number, line in read_lines(tsv):
            sides = [" ".join(side.split()) for side in line.split("\t")]
            if len(sides) != 2 or not all(sides):
                raise UserError(
                    f"{tsv}:{number}: not a foreign sentence, a tab and an English one; write it so"
                )
            sources.write(f"{sides[0]}\n")
            targets.write(f"{sides[1]}\n")


def sources(lists: str, out: str, foreign: str | None = None) -> None:
    """Write the sources of lists by utterance; UserError for another number of lines than lists."""
    nbests = list(jsonl.read(lists))
    texts = [" ".join(nbest.extra.get("source", "").split()) for nbest in nbests]
    if foreign:
        texts = read_sentences(foreign)
        if len(texts) != len(nbests):
            raise other_number(foreign, len(texts), f"{len(nbests)} lists", lists)
    pairs = zip(nbests, texts, strict=True)
    kaldi_text.write({nbest.utt: text for nbest, text in pairs if text}, out)


def number(path: str, out: str) -> None:
    """Write plain lines as Kaldi text, their numbers from 1 as ids."""
    kaldi_text.write({str(i): line for i, line in enumerate(read_sentences(path), 1)}, out)


VERBS = {"split": split, "pairs": pairs, "sources": sources, "number": number}

if __name__ == "__main__":
    verb, *arguments = sys.argv[1:]
    with exit_with_message():
        VERBS[verb](*arguments)
