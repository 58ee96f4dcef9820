"""bench.py score: run time of language models by sentence length, and batched; of scoring or
of sentence vectors
"""

from dataclasses import dataclass

from measures.represent import bench_representation
from measures.score import bench_score, format_ratios, random_scorers, trained_scorers

from kinds.settings import TimedSettings
from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.grammar import parse_pairs
from lmtools.base.options import option
from lmtools.verbs.options import SEVERAL_LMS

PAPER = {"layers": 3, "dim": 512, "heads": 8, "ffn": 2048, "positions": 128}


@dataclass(frozen=True)
class ScoreBench(TimedSettings):
    """Settings of the benchmark of scoring."""

    repeats: int = option(21, "sentences a length; the median", least=1)
    length: list[int] = option((5, 10, 15, 20, 30, 40, 50), "words of a sentence", least=1)
    representation: bool = option(False, "time sentence vectors (no output layer), not scores")


SETTINGS = ScoreBench


def arguments(parser):
    """Measure run time of language models by sentence length, and batched; of scoring or of
    sentence vectors.
    """
    parser.add("--lm", **SEVERAL_LMS, help="a model; default: the paper's sizes, random weights")
    help_text = "ids of random models (default: %(default)s)"
    parser.add("--vocab-size", default=30_000, help=help_text)
    parser.add("--device", default="cpu")
    parser.add("--engine")


def run(args, settings):
    """Measure; the figures, and the lines of the ratios."""
    lms = parse_pairs(args.lm, "--lm", "NAME=DIR")
    computing = Computing(args.device, args.precision, args.engine)
    scorers = (
        trained_scorers(lms, computing)
        if lms
        else random_scorers(PAPER, args.vocab_size, computing)
    )
    if not scorers:
        raise UserError("--lm: none of them is a neural model of lmtools; give at least one")
    figures = (bench_representation if settings.representation else bench_score)(
        scorers, settings.length, settings.repeats, settings.clock
    )
    unit = "sentences" if settings.representation else "hypotheses"
    return figures, [
        f"{figures['machine']}; {settings.threads} thread(s), {figures['precision']}, median of"
        f" {settings.repeats}",
        *format_ratios(figures["rows"]),
        *(
            f"batched {name}: {row[unit + '_per_second']:.0f} {unit} of {row['tokens']} tokens a"
            f" second, {row['gflops']:.0f} GFLOP/s, {row['share']:.0%} of the machine's"
            f" {row['matrix_gflops']:.0f} on the same products"
            for name, row in figures["batched"].items()
        ),
    ]
