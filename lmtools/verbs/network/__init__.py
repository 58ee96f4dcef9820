"""lmtools network: confusion networks of lists and lattices, the consensus of their words and
confidences.
"""

from lmtools.verbs.network import build, calibrate, measure, recombine, rover, substitute, tune
from lmtools.verbs.parser import add_actions

ACTIONS = {
    "build": build,
    "calibrate": calibrate,
    "measure": measure,
    "recombine": recombine,
    "rover": rover,
    "substitute": substitute,
    "tune": tune,
}


def arguments(parser):
    """Declare the actions and the options of each."""
    for _ in add_actions(parser, ACTIONS):
        pass


def run(args):
    """Do what the action says."""
    return args.act(args)
