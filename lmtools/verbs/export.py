"""lmtools export: a language model in a form that other programs load."""

from lmtools.export import FORMS
from lmtools.lock import hold_lock


def arguments(parser):
    """Declare the verb's options."""
    parser.add("--lm", help="model directory of `lmtools train` or `lmtools ngram`")
    about = "form to write"
    parser.add("--to", choices=FORMS, default=None, required=True, metavar="FORM", help=about)
    parser.add("--out", metavar="DIR", help="directory to write")


def run(args):
    """Write, and say what is there."""
    with hold_lock(args.out):
        print(FORMS[args.to](args.lm, args.out))
