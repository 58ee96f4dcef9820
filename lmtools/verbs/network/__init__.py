"""lmtools network: confusion networks of lists and lattices, the consensus of their words and
confidences.
"""

from lmtools.verbs.network import build, calibrate, measure, rover, tune
from lmtools.verbs.options import add_actions

ACTIONS = {"build": build, "rover": rover, "tune": tune, "calibrate": calibrate, "measure": measure}


def arguments(parser):
    """Declare the actions and the options of each."""
    for _ in add_actions(parser, ACTIONS):
        pass


def run(args):
    """Do what the action says."""
    return args.act(args)
