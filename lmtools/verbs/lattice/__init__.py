"""lmtools lattice: what lattices hold, their best paths, oracles and posteriors, and rescoring with
language models.
"""

from lmtools.formats import registry
from lmtools.formats.lattices import LATTICES
from lmtools.verbs.lattice import determinise, info, nbest, oracle, posteriors, rescore
from lmtools.verbs.options import add_common

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
    actions = parser.add_subparsers(dest="action", metavar="|".join(ACTIONS), required=True)
    for name, module in ACTIONS.items():
        about = " ".join(module.__doc__.partition(": ")[2].split())
        sub = actions.add_parser(name, help=about, description=about)
        sub.epilog = f"Formats of lattices:\n{registry.describe_formats(LATTICES)}"
        sub.add_argument(
            "input", metavar="F", help="file, directory or Kaldi rspecifier; - is standard input"
        )
        sub.add("--format")
        add_common(sub, inner=True)
        module.arguments(sub)
        sub.set_defaults(act=module.run)


def run(args):
    """Do what the action says."""
    return args.act(args)
