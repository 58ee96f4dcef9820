"""`lmtools corpus`: normalise, segment and binarise text, or a text and its source."""

import argparse

from lmtools.base.errors import UserError
from lmtools.text.blocks import read_again
from lmtools.text.corpus import binarise, binarise_pairs, binarise_shards
from lmtools.text.subword import load_subword
from lmtools.text.unknown import warn_unknown
from lmtools.verbs.numbers import size
from lmtools.verbs.options import SEVERAL_TEXTS


def arguments(parser):
    """Declare the verb's options."""
    parser.add("--text", **SEVERAL_TEXTS, required=True)
    help_text = (
        "for a translation model: what each line of the text is the translation of, in the same"
        " line (as many files as --text)"
    )
    parser.add("--source", **SEVERAL_TEXTS, help=help_text)
    parser.add("--kaldi")
    parser.add("--subword", required=True)
    parser.add("--out", metavar="F.bin")
    help_text = (
        "write shards, each of the ids of so many bytes of text, as 500M, to F.bin.shards, and an"
        " index of them to F.bin"
    )
    parser.add_argument("--shard-size", type=size, metavar="SIZE", help=help_text)
    parser.add("--nj", help="processes that encode; the file is the same for any number")
    parser.add("--cmd")


def run(args: argparse.Namespace) -> None:
    """Binarise and say what went in."""
    subword = load_subword(args.subword)
    places = subword, args.out
    if args.source and args.shard_size:
        raise UserError("--shard-size: a corpus of pairs is one file; leave it or --source out")
    if args.source:
        corpus = binarise_pairs(args.text, args.source, *places, args.kaldi, args.nj)
    elif args.shard_size:
        corpus = binarise_shards(args.text, *places, args.shard_size, args.kaldi, args.nj)
    else:
        corpus = binarise(args.text, *places, args.kaldi, args.nj)
    header = corpus.header
    texts = [*args.text, *(args.source or [])]
    unknown = 100 * header.unknown / header.tokens
    lines = (" ".join(line.split()[1:]) if args.kaldi else line for line in read_again(texts))
    warn_unknown(
        args.text[0],
        header.unknown,
        header.tokens,
        args.subword,
        texts=map(subword.normaliser, lines),
        known=subword.knows,
    )
    what = "pairs" if header.pairs else "sentences"
    shards = f"{len(corpus.shards)} shards, " if args.shard_size else ""
    print(
        f"{args.out}: {shards}{header.sentences} {what}, {header.tokens} tokens ({unknown:.2f}%"
        f" unknown), longest {header.longest}, {header.empty} empty lines skipped"
    )
