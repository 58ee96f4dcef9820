"""`lmtools corpus`: normalise, segment and binarise text, or a text and its source."""

import argparse
from collections.abc import Sequence

from lmtools.base.errors import UserError
from lmtools.text.blocks import read_again
from lmtools.text.corpus import (
    Corpus,
    NoSentence,
    binarise,
    binarise_pairs,
    binarise_shards,
    join_corpora,
    write_index,
    write_shards,
)
from lmtools.text.subword import load_subword
from lmtools.text.unknown import warn_unknown
from lmtools.verbs.numbers import size
from lmtools.verbs.options import SEVERAL_TEXTS
from lmtools.verbs.parts import Part, run_parts, wanted_command, writing_part

EXAMPLES = (
    "lmtools corpus --text text.txt --subword bpe --out train.bin",
    "lmtools corpus --text text.txt --subword bpe --shard-size 500M --nj 2 --out big.bin",
)


def arguments(parser):
    parser.add("--text", **SEVERAL_TEXTS, required=True)
    help_text = (
        "for a translation model: the source of each line of --text, in files of as many lines"
    )
    parser.add("--source", **SEVERAL_TEXTS, help=help_text)
    parser.add("--kaldi")
    parser.add("--subword", required=True)
    parser.add("--out", metavar="F.bin")
    help_text = (
        "write a shard to F.bin.shards for every SIZE bytes of text, and their index to F.bin"
    )
    parser.add_argument("--shard-size", type=size, metavar="SIZE", help=help_text)
    parser.add("--nj", help="number of processes that encode (default: %(default)s)")
    parser.add("--cmd", "--shard")


def run(args: argparse.Namespace) -> int:
    """Binarise and say what went in."""
    if args.source and args.shard_size:
        raise UserError("--shard-size: a corpus of pairs is one file; leave it or --source out")
    if cmd := wanted_command(args):
        return run_parts(args, cmd, [args.out])
    subword = load_subword(args.subword)
    if args.shard:
        reads = [*args.text, *(args.source or ()), args.subword]
        with writing_part(args, args.out, reads) as part:
            if part:
                write_part(args, subword, *part)
        return 0
    places = subword, args.out
    if args.source:
        corpus = binarise_pairs(args.text, args.source, *places, args.kaldi, args.nj)
    elif args.shard_size:
        corpus = binarise_shards(args.text, *places, args.shard_size, args.kaldi, args.nj)
    else:
        corpus = binarise(args.text, *places, args.kaldi, args.nj)
    describe(corpus, args.out, args.text, args.source or [], kaldi=args.kaldi, subword=args.subword)
    return 0


def write_part(args: argparse.Namespace, subword, out: str, facts: dict) -> None:
    """Write a part of the corpus, which may hold no sentence; shards to their place."""
    facts |= {"text": args.text, "source": args.source or [], "kaldi": args.kaldi}
    facts |= {"subword": args.subword, "empty": 0}
    try:
        if args.source:
            more = args.kaldi, args.nj
            binarise_pairs(args.text, args.source, subword, out, *more, shard=args.shard)
        elif args.shard_size:
            more = args.shard_size, args.kaldi, args.nj
            facts["shards"] = write_shards(args.text, subword, args.out, *more, shard=args.shard)
        else:
            binarise(args.text, subword, out, args.kaldi, nj=args.nj, shard=args.shard)
    except NoSentence as error:
        facts["empty"] = error.empty


def join(parts: Sequence[Part], out: str, **options) -> None:
    """Write the corpus, or the index of its shards, of all parts; say what went in."""
    several = [part.facts["facts"] for part in parts]
    facts = several[0]
    sources = [*facts["text"], *facts["source"]]
    if "shards" in facts:
        write_index([shard for each in several for shard in each["shards"]], out, sources)
    else:
        files = [part.output for part in parts if part.output.is_file()]
        join_corpora(files, out, sources, sum(each["empty"] for each in several))
    names = ("text", "source", "kaldi", "subword")
    describe(Corpus.open(out), out, *(facts[name] for name in names))


def describe(corpus: Corpus, out: str, text, source, kaldi: bool, subword: str) -> None:
    """Say what went in, and what the subword model does not know."""
    header, texts, model = corpus.header, [*text, *source], corpus.subword
    unknown = 100 * header.unknown / header.tokens
    lines = (" ".join(line.split()[1:]) if kaldi else line for line in read_again(texts))
    warn_unknown(
        text[0],
        header.unknown,
        header.tokens,
        subword,
        texts=map(model.normaliser, lines),
        known=model.knows,
    )
    what = "pairs" if header.pairs else "sentences"
    shards = "" if corpus.shards[0].path == corpus.path else f"{len(corpus.shards)} shards, "
    print(
        f"{out}: {shards}{header.sentences} {what}, {header.tokens} tokens ({unknown:.2f}%"
        f" unknown), longest {header.longest}, {header.empty} empty lines skipped"
    )
