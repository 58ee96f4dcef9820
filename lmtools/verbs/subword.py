"""`lmtools subword`: learn a subword model, a word list or a character list from text."""

import argparse

from lmtools.files import read_lines
from lmtools.subword import SUBWORDS, train
from lmtools.text import add_arguments, from_arguments


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--text", required=True, nargs="+", action="extend", metavar="F", help="text, one sentence a line (.gz, .xz, -)")
    parser.add_argument("--type", required=True, choices=SUBWORDS, dest="scheme", help="what the vocabulary is made of")
    parser.add_argument("--vocab-size", type=positive, metavar="N", help="ids in all, five specials included; word and char: default all")
    parser.add_argument("--min-count", type=positive, default=1, metavar="N", help="word and char: drop what occurs less often")
    parser.add_argument("--sentences", type=positive, default=1_000_000, metavar="N", help="bpe and unigram: learn from a random sample")
    parser.add_argument("--out", required=True, metavar="DIR", help="directory to write")
    add_arguments(parser)


def positive(text: str) -> int:
    """A whole number above 0."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def run(args: argparse.Namespace) -> None:
    """Learn, save, and say how large it became."""
    lines = (line for path in args.text for _, line in read_lines(path))
    subword = train(args.scheme, lines, args.vocab_size, from_arguments(args), args.out, args.min_count, args.sentences)
    print(f"{args.out}: {args.scheme} vocabulary of {subword.size} ids, hash {subword.hash[:12]}")
