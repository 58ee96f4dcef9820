"""`lmtools corpus`: normalise, segment and binarise text."""

import argparse

from lmtools.corpus import binarise
from lmtools.subword import load_subword
from lmtools.text.blocks import read_again
from lmtools.text.unknown import warn_unknown
from lmtools.verbs.numbers import positive


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--text",
        required=True,
        nargs="+",
        action="extend",
        metavar="F",
        help="text, one sentence a line (.gz, .xz, -)",
    )
    parser.add_argument(
        "--kaldi",
        action="store_true",
        help="the first word of each line is an utterance id: drop it",
    )
    parser.add_argument(
        "--subword",
        required=True,
        metavar="DIR",
        help="subword model directory, as `lmtools subword` writes it",
    )
    parser.add_argument(
        "--nj",
        type=positive,
        default=1,
        metavar="N",
        help="processes that encode; the file is the same for any number",
    )
    parser.add_argument("--out", required=True, metavar="F.bin", help="file to write")


def run(args: argparse.Namespace) -> None:
    """Binarise and say what went in."""
    subword = load_subword(args.subword)
    header = binarise(args.text, subword, args.out, args.kaldi, args.nj).header
    unknown = 100 * header.unknown / header.tokens
    lines = (" ".join(line.split()[1:]) if args.kaldi else line for line in read_again(args.text))
    warn_unknown(
        args.text[0],
        header.unknown,
        header.tokens,
        args.subword,
        map(subword.normaliser, lines),
        subword.knows,
    )
    print(
        f"{args.out}: {header.sentences} sentences, {header.tokens} tokens ({unknown:.2f}%"
        f" unknown), longest {header.longest}, {header.empty} empty lines skipped"
    )
