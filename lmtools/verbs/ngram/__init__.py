"""lmtools ngram: estimate an n-gram language model, or make one of others."""

from lmtools.base.allocator import keep_freed_memory
from lmtools.verbs.ngram import convert, estimate, mix, prune, quantize
from lmtools.verbs.parser import add_actions

SMALL = 1 << 25  # bytes
ACTIONS = {"convert": convert, "mix": mix, "prune": prune, "quantize": quantize}


def arguments(parser):
    """Declare the options of estimation, and the actions with theirs."""
    for sub in add_actions(parser, ACTIONS, required=False):
        sub.groups["output"].description = "a directory as `lmtools ngram` writes it"
    estimate.arguments(parser)
    parser.set_defaults(act=estimate.run, refuse=parser.error)


def run(args):
    """Do what the action says; without one, estimate."""
    # actions on models sort small blocks
    keep_freed_memory(*([] if args.act is estimate.run else [SMALL]))
    return args.act(args)
