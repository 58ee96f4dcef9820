"""`lmtools ngram`: estimate an n-gram language model with interpolated modified Kneser-Ney
smoothing.
"""

import argparse
from collections.abc import Sequence
from itertools import islice

from lmtools.base.errors import UserError
from lmtools.base.log import say, say_lines
from lmtools.ngram import build, directory
from lmtools.ngram.directory import tokeniser
from lmtools.ngram.kneser_ney import FALLBACK
from lmtools.ngram.parts import TextParts, write_part
from lmtools.text.blocks import read_again
from lmtools.text.subword import UNK, load_subword
from lmtools.text.unknown import LOOKED_AT, doubt_text, warn_unknown
from lmtools.verbs.help import Rare
from lmtools.verbs.numbers import positive, size
from lmtools.verbs.options import SEVERAL_TEXTS
from lmtools.verbs.parser import Parser, add_common, add_normaliser, normaliser_of
from lmtools.verbs.shards import Part, writing_part

NGRAM_MODEL = "directory of lmtools ngram, an installed model, or an ARPA file"


def arguments(parser):
    """Declare the verb's options."""
    parser.add("--text", **SEVERAL_TEXTS)
    help_text = (
        "instead of text, counts of its n-grams: lines `of the 12`, all orders, with <s> and </s>,"
        " as SRILM's ngram-count -write has them"
    )
    parser.add_argument("--counts", nargs="+", metavar="F", help=Rare(help_text))
    help_text = "words of the longest n-gram, 1 to 6"
    parser.add_argument("--order", type=positive, metavar="N", help=help_text)
    help_text = "model the pieces of this subword model (and take its normaliser); default words"
    parser.add("--subword", help=help_text)
    help_text = (
        "closed vocabulary: all that --subword's model or list lacks, and <unk> in the text, is one"
        " token with a probability of its own"
    )
    parser.add_argument("--unk", action="store_true", help=Rare(help_text))
    help_text = (
        "leave out n-grams that occur less often, a number an order from 1 (which is 1), the last"
        " for all longer ones: 1 1 2 are SRILM's usual ones, 0 0 1 of lmplz's --prune"
    )
    parser.add_argument(
        "--min-count", nargs="+", type=positive, default=[], metavar="N", help=help_text
    )
    add_kenlm(parser)
    help_text = "memory for sorting, the rest is on the disk of --out; default 2G"
    parser.add_argument(
        "--memory", type=size, default=directory.MEMORY, metavar="SIZE", help=Rare(help_text)
    )
    parser.add("--out", metavar="DIR", required=False, help="directory to write")
    parser.add("--shard")
    add_normaliser(parser)


def add_kenlm(parser):
    """Declare where KenLM's build_binary is."""
    help_text = (
        "KenLM's build_binary, whose lm.bin loads at once: use the one in DIR; auto (default): the"
        " one in $LMTOOLS_KENLM, tools/kenlm or PATH; none"
    )
    parser.add_argument("--kenlm", default="auto", metavar="DIR|auto|none", help=Rare(help_text))


def run(args: argparse.Namespace) -> None:
    """Estimate a model, or leave a part of its text."""
    if args.text and args.counts:
        args.refuse("--counts stands in place of --text; give one of them")
    texts = args.text or args.counts
    given = {"--text (or --counts)": texts, "--order": args.order, "--out": args.out}
    if missing := [name for name, value in given.items() if value is None]:
        args.refuse(f"the following arguments are required: {', '.join(missing)}")
    tokens = load_subword(args.subword) if args.subword else normaliser_of(args)
    if args.shard:
        if args.counts:
            raise UserError("--counts: is read whole; leave --shard out")
        reads = [*args.text, *([args.subword] if args.subword else [])]
        with writing_part(args, args.out, reads) as part:
            if part:
                out, facts = part
                tallies = write_part(args.text, tokeniser(tokens, args.unk), args.shard, out)
                facts.update(tallies, words=args.words)
        return
    estimate(args, tokens)


def join(parts: Sequence[Part], out: str, kenlm: str = "auto") -> None:
    """Estimate the model of the parts of its text, with their options."""
    facts = [part.facts["facts"] for part in parts]
    parser = Parser(prog="lmtools ngram")
    add_common(parser)
    arguments(parser)
    args = parser.parse_args(facts[0]["words"][1:])
    args.kenlm, args.out = kenlm, out  # programs are those that the user of this command names
    tokens = load_subword(args.subword) if args.subword else normaliser_of(args)
    estimate(args, tokens, TextParts([part.output for part in parts], facts, args.text[0]))


def estimate(args: argparse.Namespace, tokens, parts: TextParts | None = None) -> None:
    """Estimate, write, and say what was unusual and how large it became."""
    texts = args.text or args.counts
    for path in args.text or ():
        say_lines(doubt_text(path, read_again([path])))
    if args.subword and args.text:
        lines = list(map(tokens.normaliser, islice(read_again(args.text), LOOKED_AT)))
        ids = [i for sentence in tokens.segment(lines) for i in sentence]
        counts = ids.count(UNK), len(ids)
        warn_unknown(args.text[0], *counts, args.subword, texts=lines, known=tokens.knows)
    description = build(
        texts, args.order, args.out, tokens, parts, kenlm=args.kenlm, memory=args.memory,
        closed=args.unk, min_counts=args.min_count, counted=bool(args.counts),
    )  # fmt: skip
    if description.fallback:
        orders = " ".join(map(str, description.fallback))
        amounts = " ".join(map(str, FALLBACK))
        say(f"{args.out}: too little text for the discounts of order {orders}; {amounts} instead")
    if description.reserved:
        left_out = f"left out {description.reserved} words of the text"
        say(f"{args.out}: {left_out} that read <s>, </s> or <unk>")
    counts = " ".join(map(str, description.counts))
    print(
        f"{args.out}: {description.order}-gram model by {description.estimator}, n-grams {counts};"
        f" {description.sentences} sentences, {description.tokens} tokens"
    )
