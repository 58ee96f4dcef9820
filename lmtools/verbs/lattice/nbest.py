"""lmtools lattice nbest: the best distinct word sequences of each lattice, in order, with their scores"""

from lmtools.formats import FORMATS, form
from lmtools.lattice.paths import as_nbest
from lmtools.verbs.lattice.common import HEADERS, add_weights, known, lattices_of, references, sound, weights_of
from lmtools.verbs.numbers import positive


def arguments(parser):
    """Declare the action's options."""
    add_weights(parser, HEADERS)
    parser.add_argument("--n", type=positive, default=100, metavar="N", help="hypotheses a lattice (default: %(default)s)")
    parser.add_argument("--ref", metavar="F", help="Kaldi text with the references, joined by utterance")
    parser.add_argument("--out", required=True, metavar="F", help="N-best lists; - is standard output")
    parser.add_argument("--to", default="jsonl", metavar="FMT", help="their format (default: %(default)s)")


def run(args):
    """Write the lists one by one."""
    weights, reference = weights_of(args), references(args.ref)
    lattices = map(sound, lattices_of(args))
    total = args.to.partition(":")[0] != "jsonl"
    lists = (as_nbest(lattice, known(weights, lattice), args.n, reference(lattice.utt), total) for lattice in lattices)
    form.named(args.to, FORMATS).write(lists, args.out)
