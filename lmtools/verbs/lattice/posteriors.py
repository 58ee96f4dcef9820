"""lmtools lattice posteriors: the probability of each arc, as SLF's field `p` beside its scores, or
as the one score of other formats
"""

from lmtools.formats import registry
from lmtools.formats.lattices import LATTICES
from lmtools.lattice.forward import add_posteriors
from lmtools.rescoring import parse_weights
from lmtools.verbs.lattice.common import choose_weights, mend_lattice, read_lattices


def arguments(parser):
    """Declare the action's options."""
    parser.add("--weights")
    parser.add("--scale", default=1.0)
    parser.add("--out", help="lattices; - is standard output")
    parser.add("--to", default="slf")


def run(args):
    """Write the lattices one by one."""
    weights = parse_weights(args.weights)
    beside = args.to.partition(":")[0] == "slf"
    lattices = map(mend_lattice, read_lattices(args))
    marked = (
        add_posteriors(lattice, choose_weights(weights, lattice), args.scale, beside)
        for lattice in lattices
    )
    registry.find_format(args.to, LATTICES).write(marked, args.out)
