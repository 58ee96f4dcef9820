"""lmtools ppl: (pseudo-)perplexity of a text at the subword and the word level."""

from dataclasses import replace

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.base.options import fill
from lmtools.base.seal import write_json
from lmtools.base.specs import LMSpec
from lmtools.formats import kaldi_text
from lmtools.score import load
from lmtools.score.lists import warn_scored
from lmtools.score.ppl import mixture_perplexity, perplexity
from lmtools.text.blocks import read_text
from lmtools.text.unknown import MANY, doubt_pieces
from lmtools.verbs.experiment import split_lms
from lmtools.verbs.numbers import amount
from lmtools.verbs.options import COMPUTING
from lmtools.verbs.parser import add_lm

EXAMPLES = (
    "lmtools ppl --lm lm --text dev.txt",
    "lmtools ppl --lm lm --lm domain --tune-on dev.txt --text text.txt",
)


def arguments(parser):
    parser.epilog = (
        "Several --lm are interpolated linearly: token by token if they predict the same tokens,"
        " else sentence by sentence. `lmtools ngram --subword LM/subword --unk` makes an n-gram of"
        " a neural model's tokens. If the weights are known, --lm mix:LM=W,LM=W does the same."
    )
    text = "text, one sentence on each line; empty lines are skipped"
    parser.add("--text", required=True, help=text)
    parser.add("--kaldi")
    text = "model directory, installed model, KenLM or ARPA file, or hf:DIR; several are mixed"
    add_lm(parser, action="append", help=text)
    parser.add("--experiment")
    weights = parser.add_mutually_exclusive_group()
    text = "weights of several --lm, in their order; the last may be left out"
    weights.add_argument("--mix", nargs="+", type=amount, metavar="W", help=text)
    text = (
        "find the weights of several --lm that make this text most probable, as SRILM's"
        " compute-best-mix does"
    )
    weights.add_argument("--tune-on", metavar="F", help=text)
    parser.add("--out", required=False, metavar="F.json", help="also write the figures as JSON")
    parser.add(*COMPUTING, "--nj")


def run(args):
    """Measure the language model, or each of an experiment."""
    for each in split_lms(args) if args.experiment else [args]:
        measure(each)


def measure(args):
    """Read, compute, write and print."""
    lines = (
        kaldi_text.read(args.text).values()
        if args.kaldi
        else (line for _, line in read_text(args.text))
    )
    texts = keep_sentences(lines, args.text)
    say_lines(doubt_pieces(args.text, texts, f"utils/unify.py pieces < {args.text} > NEW"))
    specs, computing = list(map(LMSpec.parse, args.lm)), fill(Computing, args)
    for spec in specs:
        if spec.normalise != "full":
            raise UserError(f"--lm {spec}: perplexity is of probabilities; leave normalise out")
    if len(args.lm) > 1:
        figures = mix(args, texts, specs, computing)
    elif args.mix or args.tune_on:
        given = "--mix" if args.mix else "--tune-on"
        raise UserError(f"{given}: weights of several language models; give --lm again")
    else:
        figures = perplexity(texts, specs[0], computing)
    figures |= {"text": args.text}
    unknown, words = figures["oov"], figures["tokens"] - figures["sentences"]
    if unknown > MANY * words:  # the model once more: this is rare
        parts = (f"{part['lm']}={part['weight']!r}" for part in figures.get("mixture", ()))
        lm = f"mix:{','.join(parts)}" if len(specs) > 1 else specs[0].lm
        scorer = load(replace(specs[0], lm=lm), computing)
        warn_scored(args.text, texts, (unknown, words), scorer)
    if args.out:
        write_json(figures, args.out)
    show_figures(figures)


def show_figures(figures):
    """Print the figures, and on standard error by what rules they are."""
    print(
        f"{figures['kind']} of {figures['text']}: word {figures['word_ppl']:.2f}, token"
        f" {figures['subword_ppl']:.2f} (by sentence: mean {figures['sentence_ppl_mean']:.2f},"
        f" median {figures['sentence_ppl_median']:.2f}), {figures['bits_per_char']:.3f} bits a"
        " character"
    )
    print(
        f"{figures['sentences']:,} sentences, {figures['words']:,} words, {figures['tokens']:,}"
        f" tokens, {figures['oov']:,} unknown"
    )
    if "known_ppl" in figures:
        print(f"without unknown tokens: token {figures['known_ppl']:.2f}")
    for part in figures.get("mixture", ()):
        print(
            f"{part['weight']:.4f} {part['lm']}: alone word {part['word_ppl']:.2f}, token"
            f" {part['subword_ppl']:.2f}"
        )
    if "held_out" in figures:
        tuned = figures["held_out"]
        print(
            f"weights tuned on {figures['tuned_on']}, {tuned['tokens']:,} tokens: there word"
            f" {tuned['word_ppl']:.2f}, token {tuned['subword_ppl']:.2f}"
        )
    if figures.get("criterion", "softmax") != "softmax":
        spread = "mean {mean:.3f}, sd {sd:.3f}, from {min:.3f} to {max:.3f} nats".format(
            **figures["log_normaliser"]
        )
        print(f"log Z of {figures['criterion']}: {spread}")
    say_lines([*figures.get("notes", ()), f"rules: {figures['rules']}"])


def mix(args, texts, specs, computing):
    """Return the figures of a mixture, with what its weights were tuned on."""
    if not (args.mix or args.tune_on):
        raise UserError(
            f"--lm {' --lm '.join(args.lm)}: a mixture; give its weights, --mix W ..., or --tune-on"
            " TEXT to find them"
        )
    if args.mix:
        return mixture_perplexity(texts, specs, computing, args.mix)
    held_out = keep_sentences((line for _, line in read_text(args.tune_on)), args.tune_on)
    return mixture_perplexity(texts, specs, computing, held_out=held_out) | {
        "tuned_on": args.tune_on
    }


def keep_sentences(lines, path):
    """Return the lines that are not empty; UserError if there are none."""
    if texts := [line for line in lines if line.strip()]:
        return texts
    raise UserError(f"{path}:1: no sentences; give text")
