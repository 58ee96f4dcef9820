"""lmtools lattice nbest: the best distinct word sequences of each lattice, in order, with their
scores
"""

from lmtools.formats import FORMATS, registry
from lmtools.formats.lists import join_refs
from lmtools.lattice.paths import as_nbest
from lmtools.rescoring import parse_weights
from lmtools.verbs.lattice.common import choose_weights, mend_lattice, read_lattices
from lmtools.verbs.parser import add_references


def arguments(parser):
    """Declare the action's options."""
    add_references(parser, "lattices")
    parser.add("--weights")
    parser.add("--depth", default=100, help="hypotheses a lattice (default: %(default)s)")
    parser.add("--out", help="N-best lists; - is standard output")
    parser.add("--to")


def run(args):
    """Write the lists one by one."""
    weights = parse_weights(args.weights)
    lattices = join_refs(
        map(mend_lattice, read_lattices(args)), args.ref, args.ref_lines, args.input
    )
    total = args.to.partition(":")[0] != "jsonl"
    lists = (
        as_nbest(lattice, choose_weights(weights, lattice), args.depth, ref, total=total)
        for lattice, ref in lattices
    )
    registry.find_format(args.to, FORMATS).write(lists, args.out)
