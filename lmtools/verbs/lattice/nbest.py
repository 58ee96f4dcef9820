"""lmtools lattice nbest: the best distinct word sequences of each lattice, in order, with their
scores
"""

from lmtools.formats import FORMATS, registry
from lmtools.lattice.paths import as_nbest
from lmtools.verbs.lattice.common import known, lattices_of, sound, weights_of
from lmtools.verbs.options import LATTICE_WEIGHTS, add_references
from lmtools.verbs.references import joined


def arguments(parser):
    """Declare the action's options."""
    add_references(parser, "lattices")
    parser.add("--weights", help=LATTICE_WEIGHTS)
    parser.add("--depth", default=100, help="hypotheses a lattice (default: %(default)s)")
    parser.add("--out", help="N-best lists; - is standard output")
    parser.add("--to")


def run(args):
    """Write the lists one by one."""
    weights = weights_of(args)
    lattices = joined(args, map(sound, lattices_of(args)))
    total = args.to.partition(":")[0] != "jsonl"
    lists = (
        as_nbest(lattice, known(weights, lattice), args.depth, ref, total)
        for lattice, ref in lattices
    )
    registry.find_format(args.to, FORMATS).write(lists, args.out)
