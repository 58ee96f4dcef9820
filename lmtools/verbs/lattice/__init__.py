"""lmtools lattice: what lattices hold, their best paths and oracles, and rescoring with language
models.
"""

import argparse

from lmtools.formats import registry
from lmtools.formats.lattices import LATTICES
from lmtools.verbs import add_common
from lmtools.verbs.lattice import info, nbest, oracle, rescore

ACTIONS = {"info": info, "nbest": nbest, "oracle": oracle, "rescore": rescore}


def arguments(parser):
    """Declare the actions and the options of each."""
    actions = parser.add_subparsers(dest="action", metavar="|".join(ACTIONS), required=True)
    for name, module in ACTIONS.items():
        about = module.__doc__.partition(": ")[2].strip()
        sub = actions.add_parser(
            name,
            help=about,
            description=about,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.epilog = f"Formats of lattices:\n{registry.describe_formats(LATTICES)}"
        sub.add_argument(
            "input", metavar="F", help="file, directory or Kaldi rspecifier; - is standard input"
        )
        sub.add_argument(
            "--from",
            dest="source",
            metavar="FMT",
            help="its format, NAME or NAME:option=value,... (default: recognised)",
        )
        add_common(sub, inner=True)
        module.arguments(sub)
        sub.set_defaults(act=module.run)


def run(args):
    """Do what the action says."""
    return args.act(args)
