"""`lmtools report`: tables, figures and one self-contained HTML page of an experiment."""

import argparse
import shlex
import webbrowser
from pathlib import Path

from lmtools.base.log import say, say_lines
from lmtools.report import REPORTS, write_report
from lmtools.report.style import load_style
from lmtools.verbs.experiment import load_experiment
from lmtools.verbs.options import GROUPS
from lmtools.verbs.parser import parse_phrases

EXAMPLES = (
    "lmtools report exp",
    "lmtools report exp --nbest dev.jsonl test.jsonl --title 'My corpus'",
)


def arguments(parser):
    parser.add_argument(
        "exp",
        metavar="EXP_DIR",
        help="directory of the experiment; the report is written to EXP_DIR/report",
    )
    parser.add(
        "--nbest",
        nargs="+",
        action="extend",
        default=[],
        required=False,
        help="N-best lists (default: data/*/nbest.jsonl beside EXP_DIR)",
    )
    help_text = f"{GROUPS['input']['--words']['help']}, and mark its words on the page"
    parser.add("--words", help=help_text)
    parser.add_argument(
        "--what",
        choices=REPORTS,
        help="report on rescored lists, on language models by themselves, or on sentence similarity"
        " (default: what EXP_DIR holds)",
    )
    parser.add(
        "--experiment", help="experiment's file, for the order, labels and looks of the systems"
    )
    parser.add(
        "--conf",
        help="YAML file with printed names, their order and looks, and the tables of `papers:`",
    )
    parser.add_argument(
        "--title", help="name of the corpus (default: the recipe's name and its option --corpus)"
    )
    help_text = "open the page in the browser"
    parser.groups["output"].add_argument("--open", action="store_true", help=help_text)


def run(args: argparse.Namespace) -> None:
    """Write the report, print the main table, and say what is absent or does not fit."""
    words = ["lmtools", "report", args.exp]
    for name in ("nbest", "words", "what", "experiment", "conf", "title"):
        if value := getattr(args, name):
            words += [f"--{name}", *(value if isinstance(value, list) else [value])]
    plan = load_experiment(args.experiment) if args.experiment else None
    text, notes = write_report(
        args.exp,
        args.nbest,
        title=args.title,
        command=shlex.join(words),
        what=args.what,
        style=load_style(Path(args.conf) if args.conf else None, plan),
        words=parse_phrases(args.words, "--words"),
    )
    print(text)
    home = f"{args.exp}/report"
    say_lines(
        [
            *notes,
            f"{home}/index.html: the report; {home}/RESULTS.md: its tables;"
            f" {home}/rows.csv: every figure",
        ]
    )
    if args.open:
        page = Path(home, "index.html").resolve()
        if not webbrowser.open(page.as_uri()):
            say(f"{page}: no browser opens here; open the page yourself")
