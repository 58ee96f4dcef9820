"""lmtools lattice determinise: lattices in which every word sequence is one path, its best, without
arcs that have no word
"""

from lmtools.formats import registry
from lmtools.formats.lattices import LATTICES, detect
from lmtools.lattice.determinise import STATES, determinise
from lmtools.lattice.merge_scores import merge_scores
from lmtools.rescoring import parse_weights
from lmtools.verbs.lattice.common import choose_weights, mend_lattice, read_lattices


def arguments(parser):
    """Declare the action's options."""
    parser.add("--weights")
    help_text = "most states of a lattice; prune those that exceed it (default: %(default)s)"
    parser.add("--states", default=STATES, help=help_text)
    parser.add("--out", help="lattices; - or a Kaldi wspecifier for a pipe")
    parser.add("--to", default=None, help="format of the output (default: that of the input)")


def run(args):
    """Write the lattices one by one; scores that the format cannot hold go into one that it has."""
    weights = parse_weights(args.weights)
    args.format = args.format or detect(args.input)
    form = registry.find_format(args.to or args.format, LATTICES)
    into, keep = form.merge or ("", ())

    def results():
        for lattice in map(mend_lattice, read_lattices(args)):
            chosen = choose_weights(weights, lattice)
            small = determinise(lattice, chosen, args.states)
            fits = not form.merge or small.scores.keys() <= {into, *keep}
            yield small if fits else merge_scores(small, chosen, into, keep)

    form.write(results(), args.out)
