"""lmtools ngram: estimate an n-gram language model, or make one of others."""

import argparse
from collections.abc import Sequence
from itertools import islice

from lmtools.base.computing import keep_freed_memory
from lmtools.base.log import say, say_lines
from lmtools.ngram import build, derived, directory
from lmtools.ngram.derived import convert
from lmtools.ngram.directory import TextParts, write_part
from lmtools.ngram.kneser_ney import FALLBACK
from lmtools.text.blocks import read_again
from lmtools.text.subword import UNK, load_subword
from lmtools.text.unknown import LOOKED_AT, doubt_text, warn_unknown
from lmtools.verbs.help import Rare
from lmtools.verbs.numbers import amount, from_zero, positive, size
from lmtools.verbs.options import SEVERAL_TEXTS
from lmtools.verbs.parser import Parser, add_actions, add_common, add_normaliser, normaliser_of
from lmtools.verbs.parts import Part, writing_part

SMALL = 1 << 25  # bytes

NGRAM_MODEL = "directory of lmtools ngram, an installed model, or an ARPA file"
MODEL_OUT = "directory to write; or F.arpa, F.arpa.gz: the n-grams alone"

EXAMPLES = (
    "lmtools ngram --text text.txt --order 4 --normaliser librispeech --out 4gram",
    "lmtools ngram mix lm domain --text dev.txt --out mixed",
)


def declare_estimate(parser):
    """Declare the options of estimation."""
    parser.add("--text", **SEVERAL_TEXTS)
    help_text = "length of the longest n-grams, 1 to 6"
    parser.add_argument("--order", type=positive, metavar="N", help=help_text)
    help_text = "model the pieces of this subword model, with its normaliser (default: words)"
    parser.add("--subword", help=help_text)
    help_text = (
        "closed vocabulary: <unk> is one token with its own probability, for whatever the model or"
        " list of --subword lacks"
    )
    parser.add_argument("--unk", action="store_true", help=Rare(help_text))
    help_text = (
        "drop n-grams that occur less than N times, with an N for each order (1 for order 1), of"
        " which the last counts for longer ones; SRILM's default is 1 1 2, lmplz's --prune 0 0 1"
    )
    parser.add_argument(
        "--min-count", nargs="+", type=positive, default=[], metavar="N", help=help_text
    )
    parser.add("--kenlm")
    help_text = "memory for sorting; beyond it the disk of --out is used (default: 2G)"
    parser.add_argument(
        "--memory", type=size, default=directory.MEMORY, metavar="SIZE", help=Rare(help_text)
    )
    parser.add("--out", metavar="DIR", required=False, help=MODEL_OUT)
    parser.add("--shard")
    add_normaliser(parser)


def run_estimate(args: argparse.Namespace) -> None:
    """Estimate a model, or leave a part of its text."""
    given = {"--text": args.text, "--order": args.order, "--out": args.out}
    if missing := [name for name, value in given.items() if value is None]:
        args.refuse(f"the following arguments are required: {', '.join(missing)}")
    tokens = load_subword(args.subword) if args.subword else normaliser_of(args, args.text)
    if args.shard:
        reads = [*args.text, *([args.subword] if args.subword else [])]
        with writing_part(args, args.out, reads) as part:
            if part:
                out, facts = part
                tokenise = directory.tokeniser(tokens, args.unk)
                facts.update(write_part(args.text, tokenise, args.shard, out), words=args.typed)
        return
    estimate(args, tokens)


def join(parts: Sequence[Part], out: str, kenlm: str = "auto") -> None:
    """Estimate the model of the parts of its text, with their options."""
    facts = [part.facts["facts"] for part in parts]
    parser = Parser(prog="lmtools ngram")
    add_common(parser)
    declare_estimate(parser)
    args = parser.parse_args(facts[0]["words"][1:])
    args.kenlm, args.out = kenlm, out  # programs are those that the user of this command names
    tokens = load_subword(args.subword) if args.subword else normaliser_of(args, args.text)
    estimate(args, tokens, TextParts([part.output for part in parts], facts, args.text[0]))


def estimate(args: argparse.Namespace, tokens, parts: TextParts | None = None) -> None:
    """Estimate, write, and say what was unusual and how large it became."""
    for path in args.text:
        say_lines(doubt_text(path, read_again([path])))
    if args.subword:
        lines = list(map(tokens.normaliser, islice(read_again(args.text), LOOKED_AT)))
        ids = [i for sentence in tokens.segment(lines) for i in sentence]
        counts = ids.count(UNK), len(ids)
        warn_unknown(args.text[0], *counts, args.subword, texts=lines, known=tokens.knows)
    description = build(
        args.text, args.order, args.out, tokens, parts=parts, kenlm=args.kenlm, memory=args.memory,
        closed=args.unk, min_counts=args.min_count,
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


def declare_convert(parser):
    """Write an ARPA file of any dialect as KenLM reads it."""
    help_text = (
        "ARPA file (.gz, .xz, .bz2), also with text before \\data\\, blanks for tabs, CR line ends,"
        " a byte-order mark, or without <s> or \\end\\"
    )
    parser.add_argument("model", metavar="IN", help=help_text)
    help_text = (
        "file to write: F.arpa, F.arpa.gz, or F.bin in KenLM's binary form (needs its build_binary)"
    )
    parser.add_argument("out", metavar="OUT", help=help_text)
    parser.add("--kenlm")
    parser.groups["output"].description = None  # no directory


def run_convert(args):
    """Convert, and say what the file lacks and how large it is."""
    model, lacks = convert(args.model, args.out, args.kenlm)
    say_lines(lacks)
    counts = " ".join(map(str, model.counts))
    say(f"{args.out}: {model.order}-gram model, n-grams {counts}")


def declare_mix(parser):
    """Write the linear mixture of n-gram models as one model."""
    parser.add_argument("models", nargs="+", metavar="LM", help=NGRAM_MODEL)
    weights = parser.add_mutually_exclusive_group(required=True)
    help_text = "find the weights that make this text most probable"
    parser.add("--text", among=weights, help=help_text, **SEVERAL_TEXTS)
    help_text = "weights of the models, in their order; the last may be left out"
    weights.add_argument("--mix", nargs="+", type=amount, metavar="W", help=help_text)
    parser.add("--kenlm")
    parser.add("--out", metavar="DIR", help=MODEL_OUT)


def run_mix(args):
    description, weights = derived.mix(
        args.models, args.out, args.mix, args.text or (), kenlm=args.kenlm
    )
    for weight, lm in zip(weights, args.models, strict=True):
        print(f"{weight:.4f} {lm}")
    counts = " ".join(map(str, description.counts))
    print(f"{args.out}: {description.order}-gram mixture, n-grams {counts}")


def declare_prune(parser):
    """Leave out the n-grams that matter least (entropy pruning)."""
    parser.add_argument("model", metavar="LM", help=NGRAM_MODEL)
    help_text = (
        "drop every n-gram without which the perplexity rises by less than this share, such as 1e-8"
        " (as SRILM's ngram -prune)"
    )
    parser.add_argument("--threshold", required=True, type=amount, metavar="X", help=help_text)
    parser.add("--kenlm")
    parser.add("--out", metavar="DIR", help=MODEL_OUT)


def run_prune(args):
    description, before = derived.prune(args.model, args.out, args.threshold, args.kenlm)
    counts, were = (" ".join(map(str, sizes)) for sizes in (description.counts, before))
    print(f"{args.out}: {description.order}-gram model, n-grams {counts} of {were}")


def declare_quantize(parser):
    """Write the smallest form of a model, KenLM's quantised trie."""
    parser.add_argument("model", metavar="LM", help=NGRAM_MODEL)
    help_text = "bits of each number, 2 to 25, or 0 for all that KenLM keeps (default: %(default)s)"
    parser.add_argument("--bits", type=from_zero, default=derived.BITS, metavar="N", help=help_text)
    parser.add("--kenlm")
    parser.add("--out", metavar="DIR", help="directory to write")


def run_quantize(args):
    description = derived.quantize(args.model, args.out, args.bits, kenlm=args.kenlm)
    size, bits = derived.file_size(args.out, description), description.facts["bits"]
    print(f"{args.out}: {description.order}-gram model in {size:,} bytes, {bits} bits")


ACTIONS = {
    "convert": (declare_convert, run_convert),
    "mix": (declare_mix, run_mix),
    "prune": (declare_prune, run_prune),
    "quantize": (declare_quantize, run_quantize),
}


def arguments(parser):
    """Declare the options of estimation, and the actions with theirs."""
    for sub in add_actions(parser, ACTIONS, required=False):
        sub.groups["output"].description = "a directory as `lmtools ngram` writes it"
    declare_estimate(parser)
    parser.set_defaults(act=run_estimate, refuse=parser.error)


def run(args):
    """Do what the action says; without one, estimate."""
    # actions on models sort small blocks
    keep_freed_memory(*([] if args.act is run_estimate else [SMALL]))
    return args.act(args)
