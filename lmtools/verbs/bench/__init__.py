"""lmtools bench: measurements of speed."""

from lmtools.verbs import add_common
from lmtools.verbs.bench import criteria, lattice, lm, score
from lmtools.verbs.numbers import positive

KINDS = {"score": score, "lm": lm, "lattice": lattice, "criteria": criteria}


def arguments(parser):
    """Declare the kinds and the options of each."""
    kinds = parser.add_subparsers(dest="what", metavar="|".join(KINDS), required=True)
    for name, module in KINDS.items():
        about = module.__doc__.partition(": ")[2].strip()
        sub = kinds.add_parser(name, help=about, description=about)
        sub.add_argument(
            "--threads", type=positive, default=1, metavar="N", help="(default: %(default)s)"
        )
        sub.add_argument(
            "--precision", default="float32", help="float32, bfloat16, auto (default: %(default)s)"
        )
        sub.add_argument("--out", metavar="F.json", help="write the figures")
        add_common(sub, inner=True)
        module.arguments(sub)
        sub.set_defaults(measure=module.run)


def run(args):
    """Measure what was asked."""
    return args.measure(args)
