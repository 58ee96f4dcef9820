"""lmtools bench engine: what each engine and precision costs a language model on a CPU, and what it
changes
"""

import torch

from lmtools.bench.engine import bench_engines, describe_row
from lmtools.errors import UserError
from lmtools.formats import read
from lmtools.rescoring import Weights
from lmtools.verbs.numbers import positive


def arguments(parser):
    """Declare the benchmark's options."""
    parser.add("--lm", help="the directory of a neural model")
    parser.add("--nbest")
    help_text = (
        "what `lmtools tune` wrote of this model's scores: which winners change, and the metric"
    )
    parser.add("--weights", metavar="F.json", help=help_text)
    help_text = "of the one sentence (default: %(default)s)"
    parser.add_argument("--words", type=positive, default=20, metavar="N", help=help_text)
    parser.add("--repeats", default=20, help="turns; the least (default: %(default)s)")


def run(args):
    """Measure; the figures, and a line a way of computing."""
    if args.precision != "float32":
        raise UserError("--precision: all are measured; leave it out")
    torch.set_num_threads(args.threads)
    weights = Weights.load(args.weights) if args.weights else None
    figures = bench_engines(
        args.lm, read(args.nbest, None), weights, args.words, repeats=args.repeats
    )
    return figures, [
        f"{figures['machine']}; {args.threads} thread(s), a sentence of {args.words} words,"
        f" {figures['hypotheses']:,} hypotheses of {figures['lists']:,} lists",
        *(describe_row(row, weights) for row in figures["rows"]),
    ]
