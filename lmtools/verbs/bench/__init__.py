"""lmtools bench: measurements of speed."""

from lmtools.seal import write_json
from lmtools.verbs.bench import criteria, lattice, lm, score
from lmtools.verbs.numbers import positive
from lmtools.verbs.options import add_common

KINDS = {"score": score, "lm": lm, "lattice": lattice, "criteria": criteria}


def arguments(parser):
    """Declare the kinds and the options of each."""
    kinds = parser.add_subparsers(dest="what", metavar="|".join(KINDS), required=True)
    for name, module in KINDS.items():
        about = " ".join(module.__doc__.partition(": ")[2].split())
        sub = kinds.add_parser(name, help=about, description=about)
        about = "of one process (default: %(default)s)"
        sub.groups["machine"].add_argument(
            "--threads", type=positive, default=1, metavar="N", help=about
        )
        sub.add("--precision")
        sub.add("--out", required=False, metavar="F.json", help="write the figures")
        add_common(sub, inner=True)
        module.arguments(sub)
        sub.set_defaults(measure=module.run)


def run(args):
    """Measure what was asked, write the figures, and print the lines that tell of them."""
    figures, lines = args.measure(args)
    if args.out:
        write_json(figures, args.out)
    print(*lines, sep="\n", end="\n" if lines else "")
