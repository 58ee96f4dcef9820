"""The reference of the command line, as Markdown, from the parsers themselves."""

import argparse
import os
from collections.abc import Iterator

from lmtools.cli import VERB_GROUPS
from lmtools.verbs.commands import find_module
from lmtools.verbs.parser import Parser, add_common


def write_commands() -> str:
    """Return a heading a verb and action, each with all of its options."""
    os.environ["COLUMNS"] = "86"  # of argparse: what the page shows without scrolling
    lines = []
    for title, verbs in VERB_GROUPS.items():
        lines += [f"## {title[0].upper()}{title[1:]}", ""]
        for verb in verbs:
            for name, text in list_helps(verb):
                lines += [f"### lmtools {name}", "", "```text", text.rstrip(), "```", ""]
    return "\n".join(lines)


def list_helps(verb: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the help of a verb and of its actions."""
    parser = Parser(prog=f"lmtools {verb}")
    add_common(parser)
    find_module(verb).arguments(parser)
    parser.shows_all = True
    yield verb, parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                sub.shows_all = True
                yield f"{verb} {name}", sub.format_help()
