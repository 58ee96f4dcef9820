"""`lmtools subword`: learn a subword model, a word list or a character list from text, or take another toolkit's SentencePiece model."""

import argparse

from lmtools.files import read_lines
from lmtools.subword import SUBWORDS, Subword, adopt, train
from lmtools.text import add_arguments, from_arguments


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--text", nargs="+", action="extend", metavar="F", help="text to learn from, one sentence a line (.gz, .xz, -)")
    source.add_argument("--model", metavar="F", help="a SentencePiece model to take as it is, such as ESPnet's bpe.model")
    parser.add_argument("--type", choices=SUBWORDS, dest="scheme", help="with --text: what the vocabulary is made of")
    parser.add_argument("--vocab-size", type=positive, metavar="N", help="ids in all, five specials included; word and char: default all")
    parser.add_argument("--min-count", type=positive, default=1, metavar="N", help="word and char: drop what occurs less often")
    parser.add_argument("--sentences", type=positive, default=1_000_000, metavar="N", help="bpe and unigram: learn from a random sample")
    parser.add_argument("--out", required=True, metavar="DIR", help="directory to write")
    add_arguments(parser)
    parser.set_defaults(wrong_usage=parser.error)


def positive(text: str) -> int:
    """A whole number above 0."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def run(args: argparse.Namespace) -> None:
    """Learn or take over, save, and say how large it became."""
    if args.model and (args.scheme or args.vocab_size or args.min_count > 1):
        args.wrong_usage("--type, --vocab-size and --min-count are for learning; with --model leave them out")
    if args.text and not args.scheme:
        args.wrong_usage("--text needs --type")
    subword = adopt(args.model, from_arguments(args), args.out) if args.model else learn(args)
    print(f"{args.out}: {subword.scheme} vocabulary of {subword.size} ids, hash {subword.hash[:12]}")


def learn(args: argparse.Namespace) -> Subword:
    """The subword model learnt from the text, saved."""
    lines = (line for path in args.text for _, line in read_lines(path))
    return train(args.scheme, lines, args.vocab_size, from_arguments(args), args.out, args.min_count, args.sentences)
