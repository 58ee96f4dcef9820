"""lmtools network recombine: new hypotheses that a list lacks and its words can build, behind its
own, for language models to score
"""

from lmtools.base.errors import UserError
from lmtools.base.log import say
from lmtools.evaluate import oracle
from lmtools.formats import read, write
from lmtools.rescoring import load_weights, read_columns
from lmtools.rescoring.networks import NetworkPlan, rank_lists
from lmtools.rescoring.recombine import recombine_lists


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
    pairs = zip(nbests, lists, strict=True)
    new = [len(longer.hyps) - len(nbest.hyps) for nbest, longer in pairs]
    say(f"{args.out}: {sum(new)} new hypotheses in {sum(map(bool, new))} of {len(new)} lists")
    if all(nbest.ref is not None for nbest in nbests):
        before, after = (oracle(some)[-1] for some in (nbests, lists))
        say(f"oracle WER {before:.2f} -> {after:.2f}")
