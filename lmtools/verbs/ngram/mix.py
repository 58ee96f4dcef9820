"""lmtools ngram mix: the linear mixture of n-gram models as one model."""

from lmtools.ngram import derived
from lmtools.verbs.ngram.estimate import NGRAM_MODEL, add_kenlm
from lmtools.verbs.numbers import amount
from lmtools.verbs.options import SEVERAL_TEXTS


def arguments(parser):
    """Declare the action's options."""
    parser.add_argument("models", nargs="+", metavar="LM", help=NGRAM_MODEL)
    weights = parser.add_mutually_exclusive_group(required=True)
    help_text = "weights by expectation maximisation: those under which this text is most probable"
    parser.add("--text", among=weights, help=help_text, **SEVERAL_TEXTS)
    help_text = "weights of the models, in their order; the last one's may be left out"
    weights.add_argument("--mix", nargs="+", type=amount, metavar="W", help=help_text)
    add_kenlm(parser)
    parser.add("--out", metavar="DIR", help="directory to write")


def run(args):
    """Mix, write, and say the weights."""
    description, weights = derived.mix(
        args.models, args.out, args.mix, args.text or (), kenlm=args.kenlm
    )
    for weight, lm in zip(weights, args.models, strict=True):
        print(f"{weight:.4f} {lm}")
    counts = " ".join(map(str, description.counts))
    print(f"{args.out}: {description.order}-gram mixture, n-grams {counts}")
