"""lmtools lattice: what lattices hold, their best paths, oracles and posteriors, and rescoring with
language models.
"""

from lmtools.formats import registry
from lmtools.formats.lattices import LATTICES
from lmtools.verbs.lattice import determinise, info, nbest, oracle, posteriors, rescore
from lmtools.verbs.parser import add_actions

ACTIONS = {
    "info": info,
    "nbest": nbest,
    "oracle": oracle,
    "determinise": determinise,
    "posteriors": posteriors,
    "rescore": rescore,
}


def arguments(parser):
    """Declare the actions and the options of each."""
    help_text = "file, directory or Kaldi rspecifier; - is standard input"
    for sub in add_actions(parser, ACTIONS):
        sub.epilog = f"Formats of lattices:\n{registry.describe_formats(LATTICES)}"
        sub.add_argument("input", metavar="F", help=help_text)
        sub.add("--format")


def run(args):
    """Do what the action says."""
    return args.act(args)
