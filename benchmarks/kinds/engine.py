"""bench.py engine: what each engine and precision costs a language model on a CPU, and what it
changes
"""

from dataclasses import dataclass

from measures.engine import bench_engines, describe_row

from kinds.settings import BenchSettings
from lmtools.base.errors import UserError
from lmtools.base.options import option
from lmtools.formats import read
from lmtools.rescoring.weights import Weights


@dataclass(frozen=True)
class EngineBench(BenchSettings):
    """Settings of the benchmark of engines."""

    repeats: int = option(20, "turns; the least", least=1)
    words: int = option(20, "of the one sentence", least=1)


SETTINGS = EngineBench


def arguments(parser):
    """Measure what each engine and precision costs a language model on a CPU, and what it
    changes.
    """
    parser.add("--lm", help="the directory or name of a neural model")
    parser.add("--nbest")
    help_text = (
        "what `lmtools tune` wrote of this model's scores: which winners change, and the metric"
    )
    parser.add("--weights", metavar="F.json", help=help_text)


def run(args, settings):
    """Measure; the figures, and a line a way of computing."""
    if args.precision != "float32":
        raise UserError("--precision: all are measured; leave it out")
    weights = Weights.load(args.weights) if args.weights else None
    figures = bench_engines(
        args.lm, read(args.nbest, None), weights, settings.words, repeats=settings.repeats
    )
    return figures, [
        f"{figures['machine']}; {settings.threads} thread(s), a sentence of {settings.words} words,"
        f" {figures['hypotheses']:,} hypotheses of {figures['lists']:,} lists",
        *(describe_row(row, weights) for row in figures["rows"]),
    ]
