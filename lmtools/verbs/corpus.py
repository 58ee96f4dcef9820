"""`lmtools corpus`: normalise, segment and binarise text."""

import argparse

from lmtools.corpus import binarise
from lmtools.subword import load_subword
from lmtools.text.blocks import read_again
from lmtools.text.unknown import warn_unknown
from lmtools.verbs.options import SEVERAL_TEXTS


def arguments(parser):
    """Declare the verb's options."""
    parser.add("--text", **SEVERAL_TEXTS, required=True)
    parser.add("--kaldi")
    parser.add("--subword", required=True)
    parser.add("--out", metavar="F.bin")
    parser.add("--nj", help="processes that encode; the file is the same for any number")
    parser.add("--cmd")


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
