"""The verbs' modules and parsers, and commands that a verb runs in its own process, which are
printed ready to paste.
"""

import argparse
import importlib
import shlex
from collections.abc import Iterable
from types import ModuleType

from lmtools.base.doors import collect
from lmtools.verbs.options import GROUPS
from lmtools.verbs.parser import Parser, add_common


def repeat_options(args: argparse.Namespace, names: Iterable[str]) -> list[str]:
    """Return options `names` of GROUPS that are not at their defaults, as words."""
    words = []
    declared = {name: takes for group in GROUPS.values() for name, takes in group.items()}
    for name in names:
        value, usual = getattr(args, name[2:].replace("-", "_")), declared[name].get("default")
        if declared[name].get("action") == "store_true":
            words += [name] * value
        elif value != usual:
            words += [name, str(value)]
    return words


def find_module(verb: str) -> ModuleType:
    """Import the module of a verb: of lmtools/verbs, or of the door that brings it."""
    brought = collect("VERBS").get(verb)
    return importlib.import_module(brought[2] if brought else f"lmtools.verbs.{verb}")


def make_parser(verb: str, **more) -> Parser:
    module, parser = find_module(verb), Parser(prog=f"lmtools {verb}", **more)
    parser.examples = module.EXAMPLES
    add_common(parser)
    module.arguments(parser)
    parser.set_defaults(verb=verb, run=module.run)
    return parser


def run_command(words: list[str]) -> int:
    """Print the command, ready to paste, run it in this process, and return its exit status."""
    print(shlex.join(["lmtools", *words]), flush=True)
    args = make_parser(words[0]).parse_args(words[1:], argparse.Namespace(typed=words))
    return args.run(args) or 0
