"""bench.py lists: hypotheses a second of language models of any kind on the same N-best
lists, in turns
"""

from dataclasses import dataclass

from measures.lists import bench_lists, take_hypotheses

from kinds.settings import BenchSettings
from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.grammar import parse_pairs
from lmtools.base.options import option
from lmtools.formats import read
from lmtools.models.device import choose_device
from lmtools.score import load
from lmtools.verbs.options import SEVERAL_LMS


@dataclass(frozen=True)
class ListsBench(BenchSettings):
    """Settings of the benchmark of lists."""

    hypotheses: int = option(500, "time the first lists that have so many", least=1)


SETTINGS = ListsBench


def arguments(parser):
    """Measure hypotheses a second of language models of any kind on the same N-best lists, in
    turns.
    """
    parser.add("--lm", **SEVERAL_LMS, help="a model directory, KenLM or ARPA file, hf:DIR or mix:")
    parser.add("--nbest")
    parser.add("--device", default="cpu")


def run(args, settings):
    """Measure; the figures, and a line a model."""
    lms = parse_pairs(args.lm, "--lm", "NAME=LM")
    if not lms:
        raise UserError("--lm: no model; give NAME=LM, as often as there are models")
    texts = take_hypotheses(read(args.nbest, None), settings.hypotheses)
    scorers = {name: load(lm, Computing(args.device, args.precision)) for name, lm in lms.items()}
    figures = bench_lists(scorers, texts, settings.repeats, choose_device(args.device))
    return figures, [
        f"{figures['machine']}; {settings.threads} thread(s), {args.precision}, {len(texts):,}"
        f" hypotheses ({figures['distinct']:,} distinct), median of {settings.repeats}",
        *(
            f"{row['lm']}: {row['hypotheses_per_second']:.1f} hypotheses a second,"
            f" {row['tokens'] / len(texts):.1f} tokens each"
            for row in figures["rows"]
        ),
    ]
