"""lmtools export: a language model in a form that other programs load."""

from pathlib import Path

from lmtools.base.atomic import hold_lock
from lmtools.base.errors import UserError
from lmtools.base.specs import find_model
from lmtools.bridges.export import FORMS, NGRAM_FORMS
from lmtools.ngram.model import is_ngram


def arguments(parser):
    """Declare the verb's options."""
    parser.add("--lm", help="model directory of `lmtools train` or `lmtools ngram`")
    text = "form to write"
    parser.add("--to", choices=FORMS, default=None, required=True, metavar="FORM", help=text)
    parser.add("--out", metavar="DIR", help="directory to write")
    parser.add("--licence", "--corpus")


def run(args):
    """Write, and say what is there."""
    card = {"licence": args.licence, "corpus": args.corpus}
    given = {name: text for name, text in card.items() if text is not None}
    if given and args.to != "hf":
        raise UserError(
            f"--{next(iter(given))}: a form {args.to} has no model card; leave it out, or export"
            " --to hf"
        )
    lm = find_model(args.lm)
    if Path(lm).is_file():
        raise UserError(f"{lm}: is one file; give the directory of lmtools ngram or train")
    if args.to not in NGRAM_FORMS and is_ngram(lm):
        raise UserError(f"{lm}: is an n-gram model; export it --to arpa or fst")
    with hold_lock(args.out):
        print(FORMS[args.to](lm, args.out, **given))
