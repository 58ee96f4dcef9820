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
    actions = {}
    for name, module in ACTIONS.items():
        purpose = module.__doc__.partition(": ")[2].strip()
        module.arguments.__doc__ = f"{purpose[0].upper()}{purpose[1:]}."
        actions[name] = module.arguments, module.run
    list(add_actions(parser, actions))


def run(args):
    """Do what the action says."""
    return args.act(args)
