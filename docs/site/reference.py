"""The reference of the command line and of Python, as Markdown: a page a verb, from its parser, and
a page a group of public names.
"""

import argparse
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from lmtools.cli import VERBS
from lmtools.verbs.parser import make_parser


def write_reference(folder: Path) -> dict[str, list[str]]:
    """Write verbs/*.md and modules/*.md, and return the pages of each."""
    os.environ["COLUMNS"] = "88"  # of argparse: what the page shows without scrolling
    pages = {
        "verbs": dict(list_verbs()),
        "modules": dict(list_modules((folder / "api.md").read_text())),
    }
    for name, texts in pages.items():
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir()
        for page, text in texts.items():
            (folder / name / f"{page}.md").write_text(text)
    return {name: [f"{name}/{page}" for page in texts] for name, texts in pages.items()}


def list_verbs() -> Iterator[tuple[str, str]]:
    """Yield the name and the page of each verb."""
    for verb in VERBS:
        yield verb, "\n".join(show_helps(verb))


def show_helps(verb: str) -> Iterator[str]:
    """Yield the parts of a verb's page: its help, and that of its actions."""

    parser = make_parser(verb)
    actions = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    subs = [sub for action in actions for sub in action.choices.values()]
    for level, each in [("#", parser), *(("##", sub) for sub in subs)]:
        each.shows_all = True
        yield f"{level} {each.prog}\n\n```text\n{each.format_help().rstrip()}\n```\n"


def list_modules(table: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the page of each group of public names, a row of the table of api.md."""
    for title, cell in re.findall(r"^\| (\w[^|]+) \| (`[^|]+) \|$", table, re.MULTILINE):
        lines = [
            f"# {title[0].upper()}{title[1:]}\n",
            "```{eval-rst}",
            ".. currentmodule:: lmtools\n",
        ]
        for name in re.findall(r"`([\w.]+)`", cell):
            is_class = "exception" if name.endswith("Error") else "class"
            kind = is_class if name[0].isupper() else "function"
            module = [".. automodule:: lmtools.lattice", "   :imported-members:"]
            lines += module if "." in name else [f".. auto{kind}:: lmtools.{name}"]
        yield title.replace(" ", "-"), "\n".join([*lines, "```\n"])
