"""`lmtools corpus`: normalise, segment and binarise text."""

import argparse

from lmtools.corpus import binarise
from lmtools.subword import load_subword
from lmtools.verbs.numbers import positive


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--text", required=True, nargs="+", action="extend", metavar="F", help="text, one sentence a line (.gz, .xz, -)")
    parser.add_argument("--kaldi", action="store_true", help="the first word of each line is an utterance id: drop it")
    parser.add_argument("--subword", required=True, metavar="DIR", help="subword model directory, as `lmtools subword` writes it")
    parser.add_argument("--nj", type=positive, default=1, metavar="N", help="processes that encode; the file is the same for any number")
    parser.add_argument("--out", required=True, metavar="F.bin", help="file to write")


def run(args: argparse.Namespace) -> None:
    """Binarise and say what went in."""
    header = binarise(args.text, load_subword(args.subword), args.out, args.kaldi, args.nj).header
    unknown = 100 * header.unknown / header.tokens
    print(
        f"{args.out}: {header.sentences} sentences, {header.tokens} tokens ({unknown:.2f}% unknown), "
        f"longest {header.longest}, {header.empty} empty lines skipped"
    )
