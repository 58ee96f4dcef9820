"""lmtools network build: a confusion network of each N-best list or lattice, the consensus of its
words, their posteriors, times and alternatives
"""

from collections.abc import Iterator

from lmtools.base.errors import UserError
from lmtools.base.log import say, say_lines
from lmtools.formats import read, stream
from lmtools.formats.lattices import default_weights
from lmtools.formats.lattices import stream as stream_lattices
from lmtools.lattice.check import drop_unusable
from lmtools.lattice.mbr import ROUNDS, decode_mbr
from lmtools.lattice.paths import as_nbest
from lmtools.rescoring import check_signatures, load_weights, parse_weights, read_columns
from lmtools.rescoring.calibration import calibrate
from lmtools.rescoring.networks import CHOICES, METHODS, NetworkPlan, build_networks, rank_lists
from lmtools.types import ConfusionNetwork
from lmtools.verbs.network.common import FORMATS, add_calibration, read_calibration, write_networks

DEPTH = 100  # hypotheses of a lattice that are aligned


def arguments(parser):
    """Declare the action's options."""
    inputs = parser.groups["input"].add_mutually_exclusive_group(required=True)
    parser.add("--nbest", among=inputs, required=False)
    inputs.add_argument("--lattices", metavar="F", help="lattices, in place of lists")
    parser.add("--format", "--scores")
    help_text = (
        "what `lmtools tune` wrote, for the lists and columns that it was tuned on the like of; for"
        " lattices NAME=W,... too (default: the lists' score --score, the lattices' own weights)"
    )
    parser.add("--weights", help=help_text)
    help_text = "score of the lists that makes the posterior (default: total, am, score, rank)"
    parser.add_argument("--score", metavar="NAME", help=help_text)
    parser.add("--scale", default=1.0)
    help_text = "only the first N of a list, or the N best of a lattice (default: all; 100)"
    parser.add("--depth", help=help_text)
    help_text = (
        "align: each hypothesis with the network so far; mbr: with the words of least expected"
        " error, over all paths (default: align for lists, mbr for lattices)"
    )
    parser.add_argument("--method", choices=METHODS, help=help_text)
    help_text = "words of the output: consensus, or best, the hypothesis of the highest score"
    parser.add_argument("--choice", choices=CHOICES, default=CHOICES[0], help=help_text)
    add_calibration(parser)
    parser.add("--out", help="networks; - is standard output")
    parser.add("--to", default="json", help=f"{FORMATS} (default: %(default)s)")


def run(args):
    """Write the networks one by one, and say how many."""
    count = write_networks(calibrate(networks_of(args), read_calibration(args)), args.out, args.to)
    say(f"{args.out}: networks of {count} utterances")


def networks_of(args) -> Iterator[ConfusionNetwork]:
    """Return the networks of the input that the options name."""
    if args.lattices:
        return networks_of_lattices(args)
    return networks_of_lists(args)


def networks_of_lists(args) -> Iterator[ConfusionNetwork]:
    """Return the networks of N-best lists, which are all read first where there are score files or
    weights.
    """
    plan = NetworkPlan(args.scale, args.depth, args.choice, args.method or METHODS[0])
    if not args.weights:
        if args.scores:
            raise UserError("--scores: needs --weights, which say how much each column counts")
        nbests = stream(args.nbest, args.format or ("jsonl" if args.nbest == "-" else None))
        return build_networks(rank_lists(nbests, None, None, args.nbest, score=args.score), plan)
    if args.score:
        raise UserError("--score: is of lists without --weights, which make the total")
    nbests = read(args.nbest, args.format)
    columns = read_columns(args.scores, nbests, args.nbest)
    weights = load_weights(args.weights, nbests, columns)
    say_lines([*columns.warn_unchecked(), *check_signatures(weights, columns, args.weights)])
    return build_networks(rank_lists(nbests, weights, columns, args.nbest), plan)


def networks_of_lattices(args) -> Iterator[ConfusionNetwork]:
    """Yield the networks of lattices, read one by one."""
    if args.scores or args.score:
        raise UserError("--lattices: have their scores on their arcs; leave --scores and --score")
    weights = parse_weights(args.weights)
    for lattice in stream_lattices(args.lattices, args.format):
        lattice, messages = drop_unusable(lattice)
        say_lines(messages)
        chosen = default_weights(lattice) if weights is None else weights
        if args.method == METHODS[0]:
            plan = NetworkPlan(args.scale, args.depth, args.choice)
            nbest = as_nbest(lattice, chosen, args.depth or DEPTH, total=True)
            yield from build_networks(rank_lists([nbest], None, None, args.lattices), plan)
        else:
            rounds = 0 if args.choice == "best" else ROUNDS
            yield decode_mbr(lattice, chosen, args.scale, rounds=rounds)
