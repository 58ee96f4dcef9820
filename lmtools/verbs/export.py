"""lmtools export: a language model in a form that other programs load."""

from lmtools.errors import UserError
from lmtools.export import FORMS
from lmtools.lock import hold_lock


def arguments(parser):
    """Declare the verb's options."""
    parser.add("--lm", help="model directory of `lmtools train` or `lmtools ngram`")
    about = "form to write"
    parser.add("--to", choices=FORMS, default=None, required=True, metavar="FORM", help=about)
    parser.add("--out", metavar="DIR", help="directory to write")
    parser.add("--licence", "--corpus")


def run(args):
    """Write, and say what is there."""
    card = {"licence": args.licence, "corpus": args.corpus}
    said = {name: text for name, text in card.items() if text is not None}
    if said and args.to != "hf":
        raise UserError(
            f"--{next(iter(said))}: a form {args.to} has no model card; leave it out, or export"
            " --to hf"
        )
    with hold_lock(args.out):
        print(FORMS[args.to](args.lm, args.out, **said))
