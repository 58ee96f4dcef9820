"""lmtools ngram: estimate an n-gram language model, or make one of others."""

from lmtools.base.allocator import keep_freed_memory
from lmtools.verbs.ngram import convert, estimate, mix, prune, quantize
from lmtools.verbs.parser import add_actions

ACTIONS = {"convert": convert, "mix": mix, "prune": prune, "quantize": quantize}


def arguments(parser):
    """Declare the options of estimation, and the actions with theirs."""
    for sub in add_actions(parser, ACTIONS, required=False):
        sub.groups["output"].description = "a directory as `lmtools ngram` writes it"
    estimate.arguments(parser)
    parser.set_defaults(act=estimate.run, refuse=parser.error)


def run(args):
    """Do what the action says; without one, estimate."""
    keep_freed_memory()
    return args.act(args)
