"""lmtools bench: measurements of speed."""

from lmtools.seal import write_json
from lmtools.verbs.bench import criteria, engine, lattice, lists, lm, score
from lmtools.verbs.numbers import positive
from lmtools.verbs.options import add_actions

KINDS = {
    "score": score, "lists": lists, "lm": lm, "lattice": lattice, "criteria": criteria,
    "engine": engine,
}  # fmt: skip


def arguments(parser):
    """Declare the kinds and the options of each."""
    for sub in add_actions(parser, KINDS):
        help_text = "threads of the process (default: %(default)s)"
        sub.groups["machine"].add_argument(
            "--threads", type=positive, default=1, metavar="N", help=help_text
        )
        sub.add("--precision")
        sub.add("--out", required=False, metavar="F.json", help="write the figures")


def run(args):
    """Measure what was asked, write the figures, and print the lines that tell of them."""
    figures, lines = args.act(args)
    if args.out:
        write_json(figures, args.out)
    print(*lines, sep="\n", end="\n" if lines else "")
