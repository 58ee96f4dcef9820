#!/usr/bin/env python3
"""Text and pairs of "T-TA, uniLM and biLM beside ELMo" in ../../RESULTS.md, equal bytes each time:

    real_tasks.py text OUT --wiki F --news F...        OUT/{train,valid,test}.txt: two sorts of text
    real_tasks.py pairs OUT --snli DEV TEST --sick TRAIN DEV TEST
                                          OUT/{snli,sick}/{train,dev,test}.tsv: for the task nli

--wiki: WikiText's training text; --news: One Billion Word's, a sentence a line; --snli: label TAB
premise TAB hypothesis; --sick: the files of SemEval 2014. All plain, .gz or .xz.
"""

import argparse
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError, exit_with_message
from lmtools.base.files import read_lines

LINES, VALID, TEST = 45_000, 1_500, 2_500  # of text; news alone is held out
PAIRS = 1_502  # of SNLI's dev set that stay dev, the last ones
LENGTHS = range(3, 61)  # words of a sentence of WikiText
HYPHEN = re.compile(r" @(.)@ ")
END = re.compile(r"(?<= [.?!]) (?=[A-Z\"'])")
COLUMNS = 5  # of SICK: number, both sentences, relatedness, label


def arguments() -> argparse.Namespace:
    """Return what to write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    text, pairs = verbs.add_parser("text"), verbs.add_parser("pairs")
    for verb in text, pairs:
        verb.add_argument("out", type=Path)
    text.add_argument("--wiki", required=True)
    text.add_argument("--news", nargs="+", required=True)
    pairs.add_argument("--snli", nargs=2, required=True, metavar=("DEV", "TEST"))
    pairs.add_argument("--sick", nargs=3, required=True, metavar=("TRAIN", "DEV", "TEST"))
    return parser.parse_args()


def shuffled(lines: Iterable[str]) -> list[str]:
    """Return the lines in an order that repeats."""
    result = list(lines)
    random.Random(1).shuffle(result)
    return result


def sentences(path) -> Iterator[str]:
    """Yield wikiText's sentences, a full stop before a capital ending one; none of titles, of
    unusual length or with an unknown word.
    """
    for _, line in read_lines(path):
        if line.lstrip().startswith("="):
            continue
        for sentence in END.split(HYPHEN.sub(r"\1", line.strip())):
            words = sentence.split()
            if len(words) in LENGTHS and "<unk>" not in words:
                yield " ".join(words)


def text(args: argparse.Namespace) -> dict[str, list[str]]:
    """Return lines by file."""
    news = shuffled(line for path in args.news for _, line in read_lines(path))
    held_out = TEST + VALID
    if len(news) <= held_out:
        raise UserError(f"{args.news[0]}: {len(news)} lines; give more than {held_out}")
    known = dict.fromkeys([*news[held_out:], *shuffled(sentences(args.wiki))])
    sets = {"train": shuffled([*known][:LINES]), "valid": news[TEST:held_out], "test": news[:TEST]}
    return {f"{name}.txt": lines for name, lines in sets.items()}


def read_sick(path) -> Iterator[str]:
    """Yield the pairs of a file of SICK in the form of SNLI's."""
    for number, line in read_lines(path):
        fields = line.split("\t")
        if len(fields) != COLUMNS:
            raise UserError(f"{path}:{number}: {len(fields)} fields; give SICK's {COLUMNS}")
        if number > 1:
            yield "\t".join((fields[4].strip().lower(), fields[1], fields[2]))


def pairs(args: argparse.Namespace) -> dict[str, list[str]]:
    """Return lines by file."""
    dev, test = ([line for _, line in read_lines(path)] for path in args.snli)
    train, sick_dev, sick_test = map(list, map(read_sick, args.sick))
    both = shuffled([*dev[:-PAIRS], *train])
    sets = {
        "snli": {"train": both, "dev": dev[-PAIRS:], "test": test},
        "sick": {"train": both, "dev": sick_dev, "test": sick_test},
    }
    return {
        f"{corpus}/{name}.tsv": lines for corpus, of in sets.items() for name, lines in of.items()
    }


def main() -> None:
    """Write the files."""
    args = arguments()
    for name, lines in {"text": text, "pairs": pairs}[args.verb](args).items():
        with atomic_text(args.out / name) as stream:
            stream.writelines(line.strip() + "\n" for line in lines)
        print(f"{args.out / name}: {len(lines):,} lines")


if __name__ == "__main__":
    with exit_with_message():
        main()
