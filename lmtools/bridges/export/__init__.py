"""lmtools export: a language model in a form that other programs load; one file a family of forms,
and a name in FORMS.

A form names a function (directory of a model, directory to write) -> what to say of it; `hf` takes
what its model card says, too.
"""

import importlib.util
from pathlib import Path

from lmtools.base.atomic import hold_lock
from lmtools.base.doors import load
from lmtools.base.errors import UserError, explain_missing
from lmtools.base.specs import find_model
from lmtools.ngram.model import is_ngram

FORMS = {  # and the package that each needs
    "arpa": ("lmtools.bridges.export.ngrams:write_arpa", "numpy"),
    "fst": ("lmtools.bridges.export.ngrams:write_fst", "numpy"),
    "hf": ("lmtools.bridges.export.huggingface:write_huggingface", "transformers"),
    "onnx": ("lmtools.bridges.export.onnx:write_onnx", "onnx"),
}

NGRAM_FORMS = ("arpa", "fst")  # of n-gram models, others of neural ones

EXAMPLES = (
    "lmtools export --lm lm --to arpa --out arpa",
    "lmtools export --lm lstm --to onnx --out onnx",
)


def arguments(parser):
    parser.add("--lm", help="model directory that `lmtools train` or `lmtools ngram` wrote")
    others = [form for form in FORMS if form not in NGRAM_FORMS]
    text = f"form of an n-gram: {', '.join(NGRAM_FORMS)}; of another model: {', '.join(others)}"
    parser.add("--to", choices=FORMS, default=None, required=True, metavar="FORM", help=text)
    parser.add("--out", metavar="DIR", help="directory to write; of --to arpa also F.arpa")
    parser.add("--licence", "--corpus")


def run(args):
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
        raise UserError(f"{lm}: is an n-gram model; use --to arpa or fst")
    place, package = FORMS[args.to]
    if importlib.util.find_spec(package) is None:
        raise explain_missing(ImportError(name=package), f"--to {args.to}:")
    with hold_lock(args.out):
        print(load(place)(lm, args.out, **given))
