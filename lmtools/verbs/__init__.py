"""One module a verb: `arguments(parser)` declares, `run(args)` does."""

import argparse

SWITCHES = {
    "--debug": "show the traceback of an error",
    "--allow-commands": "run what lines `key command |` of Kaldi's script files say (default: refuse them)",
}


def add_switches(parser, action: bool = False) -> None:
    """The switches of every verb; an `action` of a verb takes them as well, after its name."""
    for switch, about in SWITCHES.items():
        options = {"default": argparse.SUPPRESS, "help": argparse.SUPPRESS} if action else {"help": about}
        parser.add_argument(switch, action="store_true", **options)
