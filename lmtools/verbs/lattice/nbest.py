"""lmtools lattice nbest: the best distinct word sequences of each lattice, in order, with their
scores
"""

from lmtools.formats import FORMATS, registry
from lmtools.lattice.paths import as_nbest
from lmtools.verbs.lattice.common import HEADERS, add_weights, known, lattices_of, sound, weights_of
from lmtools.verbs.numbers import positive
from lmtools.verbs.references import add_references, joined


def arguments(parser):
    """Declare the action's options."""
    add_weights(parser, HEADERS)
    parser.add_argument(
        "--n",
        type=positive,
        default=100,
        metavar="N",
        help="hypotheses a lattice (default: %(default)s)",
    )
    add_references(parser, "lattices")
    parser.add_argument(
        "--out", required=True, metavar="F", help="N-best lists; - is standard output"
    )
    parser.add_argument(
        "--to", default="jsonl", metavar="FMT", help="their format (default: %(default)s)"
    )


def run(args):
    """Write the lists one by one."""
    weights = weights_of(args)
    lattices = joined(args, map(sound, lattices_of(args)))
    total = args.to.partition(":")[0] != "jsonl"
    lists = (
        as_nbest(lattice, known(weights, lattice), args.n, ref, total) for lattice, ref in lattices
    )
    registry.find_format(args.to, FORMATS).write(lists, args.out)
