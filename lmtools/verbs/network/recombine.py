"""lmtools network recombine: new hypotheses that a list lacks and its words can build, behind its
own, for language models to score
"""

from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.formats import read, write
from lmtools.rescoring import load_weights, read_columns
from lmtools.rescoring.networks import NetworkPlan, rank_lists
from lmtools.rescoring.recombine import recombine_lists
from lmtools.verbs.network.common import describe_new


def arguments(parser):
    """Declare the action's options."""
    parser.add("--nbest", "--format", "--scores")
    help_text = "what `lmtools tune` wrote: orders the lists, and so says which words are likely"
    parser.add("--weights", metavar="F.json", help=help_text)
    parser.add("--scale", default=1.0)
    parser.add("--depth", default=10, help="new hypotheses a list (default: %(default)s)")
    help_text = "lists; new hypotheses have the extra `recombined`; - is standard output"
    parser.add("--out", help=help_text)
    parser.add("--to")


def run(args):
    """Read, recombine, write, and say what the lists could reach."""
    if args.scores and not args.weights:
        raise UserError("--scores: needs --weights, which say how much each column counts")
    nbests = read(args.nbest, args.format)
    columns = read_columns(args.scores, nbests, args.nbest)
    weights = load_weights(args.weights, nbests, columns) if args.weights else None
    ranked = rank_lists(nbests, weights, columns, args.nbest)
    lists = list(recombine_lists(nbests, ranked, NetworkPlan(args.scale), args.depth))
    write(lists, args.out, args.to)
    say_lines(describe_new(nbests, lists, args.out))
