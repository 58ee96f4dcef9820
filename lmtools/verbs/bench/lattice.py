"""lmtools bench lattice: real-time factor of rescoring lattices, by density and by histories
kept
"""

from itertools import islice

import torch

from lmtools.assignments import parse_pairs
from lmtools.atomic import atomic_path
from lmtools.bench.lattice import bench_lattice, format_lines
from lmtools.computing import Computing
from lmtools.errors import UserError
from lmtools.formats.lattices import stream
from lmtools.lattice.check import drop_unusable
from lmtools.report.figures.speed import draw_bench
from lmtools.rescoring import parse_weights
from lmtools.score.lattices import LatticeOptions
from lmtools.specs import LMSpec
from lmtools.verbs.help import Rare
from lmtools.verbs.numbers import amount, positive
from lmtools.verbs.options import SEVERAL_LMS, WEIGHTS


def arguments(parser):
    """Declare the benchmark's options."""
    help_text = "lattices with times: file, directory or Kaldi rspecifier"
    parser.add_argument("input", metavar="F", help=help_text)
    parser.add("--format")
    help_text = "a language model; each is measured alone"
    parser.add("--lm", **SEVERAL_LMS | {"required": True}, help=help_text)
    parser.add("--weights", help=f"{WEIGHTS}; required")
    parser.add_argument(
        "--first", type=positive, metavar="N", help=Rare("only the first N lattices")
    )
    parser.add("--max-ngram-order", "--tokens")
    several = {"nargs": "*", "default": []}
    help_text = "measure also lattices pruned to these beams"
    parser.add_argument("--by-beam", type=amount, **several, metavar="B", help=help_text)
    help_text = "measure also so many histories a state"
    parser.add_argument("--by-tokens", type=positive, **several, metavar="N", help=Rare(help_text))
    parser.add("--repeats")
    help_text = "draw real-time factors by density and by histories"
    parser.groups["output"].add_argument("--figure", metavar="F.png", help=Rare(help_text))


def run(args):
    """Measure and draw; the figures, and one line a row."""
    lms = {name: LMSpec.parse(lm) for name, lm in parse_pairs(args.lm, "--lm", "NAME=DIR").items()}
    weights = parse_weights(args.weights) or {}
    if missing := [name for name in lms if name not in weights]:
        raise UserError(
            f"no weight of {missing[0]!r}; give --weights, as in --weights am=1,{missing[0]}=10"
        )
    torch.set_num_threads(args.threads)
    lattices = [
        drop_unusable(lattice)[0] for lattice in islice(stream(args.input, args.format), args.first)
    ]
    settings = LatticeOptions(
        lms,
        weights,
        order=args.max_ngram_order,
        tokens=args.tokens,
        computing=Computing("cpu", args.precision),
    )
    figures = bench_lattice(
        lattices, lms, settings, args.by_beam, tokens=args.by_tokens, repeats=args.repeats
    )
    if args.figure:
        with atomic_path(args.figure) as path:
            path.write_bytes(draw_bench(figures))
    return figures, list(format_lines(figures))
