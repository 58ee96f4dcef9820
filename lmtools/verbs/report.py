"""`lmtools report`: tables, figures and one self-contained HTML page of an experiment."""

import argparse
import shlex

from lmtools.report import REPORTS, write_report
from lmtools.verbs import say
from lmtools.verbs.experiment import load_experiment


def arguments(parser):
    """Declare the verb's options."""
    about = "the experiment; RESULTS.md, *.png and index.html go to EXP_DIR/report"
    parser.add_argument("exp", metavar="EXP_DIR", help=about)
    parser.add(
        "--nbest",
        nargs="+",
        action="extend",
        default=[],
        required=False,
        help="N-best lists (default: data/*/nbest.jsonl beside it)",
    )
    about = (
        "what EXP_DIR holds: rescored lists, language models by themselves, or sentence"
        " similarities (default: by what is there)"
    )
    parser.add_argument("--what", choices=REPORTS, help=about)
    about = "YAML file of an experiment, which gives systems their order, labels and looks"
    parser.add("--experiment", help=about)
    about = "YAML file of printed names, their order and looks, and papers' figures to stand beside"
    parser.add("--conf", help=about)
    about = "name of the corpus (default: the recipe's name and its option corpus)"
    parser.add_argument("--title", help=about)


def run(args: argparse.Namespace) -> None:
    """Write the report, print the main table, and say what is absent or does not fit."""
    words = [
        "lmtools",
        "report",
        args.exp,
        *(["--nbest", *args.nbest] if args.nbest else []),
        *(["--what", args.what] if args.what else []),
        *(["--experiment", args.experiment] if args.experiment else []),
        *(["--conf", args.conf] if args.conf else []),
        *(["--title", args.title] if args.title else []),
    ]
    plan = load_experiment(args.experiment) if args.experiment else None
    text, notes = write_report(
        args.exp, args.nbest, args.title, shlex.join(words), args.what, args.conf, plan
    )
    print(text)
    home = f"{args.exp}/report"
    say([*notes, f"{home}/index.html: the report; {home}/RESULTS.md: its tables"])
