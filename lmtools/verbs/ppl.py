"""lmtools ppl: (pseudo-)perplexity of a text at the subword and the word level."""

import sys

from lmtools.errors import UserError
from lmtools.formats import kaldi_text
from lmtools.score import perplexity
from lmtools.score.run import warn_scored
from lmtools.seal import write_json
from lmtools.text.blocks import read_text
from lmtools.verbs.options import COMPUTING, NOISE, scoring_options


def arguments(parser):
    """Declare the verb's options."""
    about = "one sentence a line; the verb skips empty lines"
    parser.add("--text", required=True, help=about)
    parser.add("--kaldi")
    about = "the lines follow each other: an LSTM keeps its state from line to line"
    parser.add_argument("--carry", action="store_true", help=about)
    parser.add("--lm", "--intact", "--oov-penalty", *NOISE)
    parser.set_defaults(normalise="full")
    parser.add("--out", required=False, metavar="F.json", help="write the figures as JSON too")
    parser.add(*COMPUTING, "--nj")


def run(args):
    lines = (
        kaldi_text.read(args.text).values()
        if args.kaldi
        else (line for _, line in read_text(args.text))
    )
    texts = [line for line in lines if line.strip()]
    if not texts:
        raise UserError(f"{args.text}:1: no sentences; give text")
    figures = perplexity(texts, scoring_options(args), args.carry) | {"text": args.text}
    warn_scored(
        args.text,
        texts,
        figures["oov"],
        figures["tokens"] - figures["sentences"],
        scoring_options(args),
    )
    if args.out:
        write_json(figures, args.out)
    print(
        f"{figures['kind']} of {args.text}: word {figures['word_ppl']:.2f}, token"
        f" {figures['subword_ppl']:.2f} (by sentence: mean {figures['sentence_ppl_mean']:.2f},"
        f" median {figures['sentence_ppl_median']:.2f}), {figures['bits_per_char']:.3f} bits a"
        " character"
    )
    print(
        f"{figures['sentences']:,} sentences, {figures['words']:,} words, {figures['tokens']:,}"
        f" tokens, {figures['oov']:,} unknown"
    )
    if figures.get("criterion", "softmax") != "softmax":
        spread = "mean {mean:.3f}, sd {sd:.3f}, from {min:.3f} to {max:.3f} nats".format(
            **figures["log_normaliser"]
        )
        print(f"log Z of {figures['criterion']}: {spread}")
    print(f"rules: {figures['rules']}", file=sys.stderr)
