"""The verbs of the command line, one module each, and the options that all of them have."""

import argparse

from lmtools.files import LONGEST, MAX_LINE
from lmtools.verbs.numbers import size


def add_common(parser: argparse.ArgumentParser, inner: bool = False) -> None:
    """Declare the options of every verb; an `inner` parser, of an action, leaves what was given
    before the action and hides them.
    """
    unset, shown = (argparse.SUPPRESS, argparse.SUPPRESS) if inner else (None, None)
    parser.add_argument(
        "--debug",
        action="store_true",
        default=unset or False,
        help=shown or "show the traceback of an error",
    )
    about = "run what lines `key command |` of Kaldi's script files say (default: refuse them)"
    parser.add_argument(
        "--allow-commands", action="store_true", default=unset or False, help=shown or about
    )
    about = (
        "longest line to read, as 500000, 64K, 16M or 2G; a file that is read whole: 16 times"
        f" (default: ${MAX_LINE} or {LONGEST})"
    )
    parser.add_argument("--max-line", type=size, default=unset, metavar="SIZE", help=shown or about)
