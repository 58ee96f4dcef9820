"""lmtools bench score: run time of language models by sentence length, and batched; of scoring or
of sentence vectors
"""

import torch

from lmtools.bench.represent import bench_representation
from lmtools.bench.score import bench_score, random_scorers, ratios, trained_scorers
from lmtools.errors import UserError
from lmtools.verbs.bench.common import named, save
from lmtools.verbs.numbers import positive

PAPER = {"layers": 3, "dim": 512, "heads": 8, "ffn": 2048, "positions": 128}


def arguments(parser):
    """Declare the benchmark's options."""
    parser.add_argument(
        "--lm",
        action="append",
        default=[],
        metavar="NAME=DIR",
        help="a model; default: the paper's sizes, random weights",
    )
    parser.add_argument(
        "--representation",
        action="store_true",
        help="time sentence vectors (no output layer) instead of scores",
    )
    parser.add_argument(
        "--vocab-size",
        type=positive,
        default=30_000,
        metavar="N",
        help="of random models (default: %(default)s)",
    )
    parser.add_argument(
        "--words",
        type=positive,
        nargs="+",
        default=[5, 10, 15, 20, 30, 40, 50],
        metavar="N",
        help="lengths",
    )
    parser.add_argument(
        "--repeats",
        type=positive,
        default=21,
        metavar="N",
        help="sentences a length; median (default: %(default)s)",
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda ... (default: %(default)s)")


def run(args):
    """Measure, write, and print the ratios."""
    lms = named(args.lm)
    torch.set_num_threads(args.threads)
    how = (args.device, args.precision)
    scorers = trained_scorers(lms, *how) if lms else random_scorers(PAPER, args.vocab_size, *how)
    if not scorers:
        raise UserError("--lm: none of them is a neural model of lmtools; give at least one")
    figures = (bench_representation if args.representation else bench_score)(
        scorers, args.words, args.repeats
    )
    save(figures, args.out)
    print(
        f"{figures['machine']}; {args.threads} thread(s), {figures['precision']}, median of"
        f" {args.repeats}"
    )
    print("\n".join(ratios(figures["rows"])))
    unit = "sentences" if args.representation else "hypotheses"
    for name, row in figures["batched"].items():
        print(
            f"batched {name}: {row[unit + '_per_second']:.0f} {unit} of {row['tokens']} tokens a"
            f" second, {row['gflops']:.0f} GFLOP/s, {row['share']:.0%} of the machine's"
            f" {row['matrix_gflops']:.0f} on the same products"
        )
