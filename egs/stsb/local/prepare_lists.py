#!/usr/bin/env python3
"""prepare_lists.py --text TEXT --depth N LISTS OUT: the first N hypotheses of each N-best list
whose reference language models have not read.

A reference was read if TEXT, a sentence a line, has eight of its words in a row in a line, or, of a
shorter one, all of them. Words are compared in lower case and without punctuation. Lists are in the
form of `lmtools convert --to jsonl`, with references.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from lmtools.base.errors import UserError, exit_with_message
from lmtools.base.files import read_lines
from lmtools.formats import jsonl
from lmtools.text import NORMALISERS
from lmtools.verbs.numbers import positive

RUN = 8  # words in a row that two texts do not share by chance


def main(args: argparse.Namespace) -> None:
    """Write the lists that are left, and say how many there are."""
    lists = list(jsonl.read(args.lists))
    if missing := [nbest.utt for nbest in lists if nbest.ref is None]:
        raise UserError(
            f"{args.lists}: {missing[0]} has no reference; attach them with lmtools convert --ref"
        )
    read = find_read({nbest.utt: nbest.ref for nbest in lists}, args.text)
    kept = [nbest for nbest in lists if nbest.utt not in read]
    if not kept:
        raise UserError(f"{args.lists}: {args.text} has all of its references; give other text")
    jsonl.write((replace(nbest, hyps=nbest.hyps[: args.depth]) for nbest in kept), args.out)
    print(f"{args.out}: {len(kept)} of {len(lists)} lists; the text has the others' references")


def find_read(references: dict[str, str], text: str) -> set[str]:
    """Return the utterances of whose reference the file `text` has RUN words in a row."""
    runs = defaultdict(set)
    for utt, reference in references.items():
        words = normalise(reference)
        for run in cut_runs(words, min(RUN, len(words))):
            runs[run].add(utt)
    lengths = {len(run) for run in runs}
    read = set()
    for _, line in read_lines(text):
        words = normalise(line)
        for run in (run for length in lengths for run in cut_runs(words, length)):
            read |= runs.get(run, set())
    return read


def normalise(line: str) -> list[str]:
    """Return the words of a line in lower case, without punctuation."""
    return NORMALISERS["librispeech"](line).split()


def cut_runs(words: list[str], length: int) -> Iterable[tuple[str, ...]]:
    """Yield every run of `length` words; none of no words."""
    starts = range(len(words) - length + 1) if length else ()
    return (tuple(words[i : i + length]) for i in starts)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lists", metavar="LISTS", help="N-best lists with references, .jsonl")
    parser.add_argument("out", metavar="OUT")
    parser.add_argument("--text", required=True, help="what language models are trained on")
    parser.add_argument("--depth", required=True, type=positive, help="hypotheses an utterance")
    return parser.parse_args()


if __name__ == "__main__":
    with exit_with_message():
        main(arguments())
