"""bench.py lattice: real-time factor of rescoring lattices, by density and by histories
kept
"""

from dataclasses import dataclass
from itertools import islice

from measures.drawing import draw_bench
from measures.lattice import bench_lattice, format_lines

from kinds.settings import BenchSettings
from lmtools.base.atomic import atomic_path
from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.grammar import parse_pairs
from lmtools.base.options import option
from lmtools.base.specs import LMSpec
from lmtools.formats.lattices import stream
from lmtools.lattice.check import drop_unusable
from lmtools.rescoring.weights import parse_weights
from lmtools.score.lattices import LatticeOptions
from lmtools.verbs.options import SEVERAL_LMS, WEIGHTS


@dataclass(frozen=True)
class LatticeBench(BenchSettings):
    """Settings of the benchmark of lattices."""

    first: int | None = option(None, "only so many first lattices", least=1)
    tokens: int | None = option(
        None, "keep so many best histories of a lattice's state (default: all)", least=1
    )
    by_beam: list[float] = option((), "measure also lattices pruned to these beams", least=0)
    by_tokens: list[int] = option((), "measure also so many histories a state", least=1)
    figure: str | None = option(
        None, "F.png: draw real-time factors by density and by histories", path=True
    )


SETTINGS = LatticeBench


def arguments(parser):
    """Measure real-time factor of rescoring lattices, by density and by histories kept."""
    help_text = "lattices with times: file, directory or Kaldi rspecifier"
    parser.add_argument("input", metavar="F", help=help_text)
    parser.add("--format")
    help_text = "a language model; each is measured alone"
    parser.add("--lm", **SEVERAL_LMS | {"required": True}, help=help_text)
    parser.add("--weights", help=f"{WEIGHTS}; required")
    parser.add("--max-ngram-order")


def run(args, settings):
    """Measure and draw; the figures, and one line a row."""
    lms = {name: LMSpec.parse(lm) for name, lm in parse_pairs(args.lm, "--lm", "NAME=DIR").items()}
    weights = parse_weights(args.weights) or {}
    if missing := [name for name in lms if name not in weights]:
        raise UserError(
            f"no weight of {missing[0]!r}; give --weights, as in --weights am=1,{missing[0]}=10"
        )
    lattices = [
        drop_unusable(lattice)[0]
        for lattice in islice(stream(args.input, args.format), settings.first)
    ]
    options = LatticeOptions(
        lms,
        weights,
        order=args.max_ngram_order,
        tokens=settings.tokens,
        computing=Computing("cpu", args.precision),
    )
    figures = bench_lattice(
        lattices,
        lms,
        options,
        settings.by_beam,
        tokens=settings.by_tokens,
        repeats=settings.repeats,
    )
    if settings.figure:
        with atomic_path(settings.figure) as path:
            path.write_bytes(draw_bench(figures))
    return figures, list(format_lines(figures))
