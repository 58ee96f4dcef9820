"""`lmtools corpus`: normalise, segment and binarise text."""

import argparse

from lmtools.corpus import binarise, binarise_shards
from lmtools.subword import load_subword
from lmtools.text.blocks import read_again
from lmtools.text.unknown import warn_unknown
from lmtools.verbs.numbers import size
from lmtools.verbs.options import SEVERAL_TEXTS


def arguments(parser):
    """Declare the verb's options."""
    parser.add("--text", **SEVERAL_TEXTS, required=True)
    parser.add("--kaldi")
    parser.add("--subword", required=True)
    parser.add("--out", metavar="F.bin")
    about = (
        "write shards, each of the ids of so many bytes of text, as 500M, to F.bin.shards, and an"
        " index of them to F.bin"
    )
    parser.add_argument("--shard-size", type=size, metavar="SIZE", help=about)
    parser.add("--nj", help="processes that encode; the file is the same for any number")
    parser.add("--cmd")


def run(args: argparse.Namespace) -> None:
    """Binarise and say what went in."""
    subword = load_subword(args.subword)
    corpus = (
        binarise_shards(args.text, subword, args.out, args.shard_size, args.kaldi, args.nj)
        if args.shard_size
        else binarise(args.text, subword, args.out, args.kaldi, args.nj)
    )
    header = corpus.header
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
    shards = f"{len(corpus.shards)} shards, " if args.shard_size else ""
    print(
        f"{args.out}: {shards}{header.sentences} sentences, {header.tokens} tokens ({unknown:.2f}%"
        f" unknown), longest {header.longest}, {header.empty} empty lines skipped"
    )
