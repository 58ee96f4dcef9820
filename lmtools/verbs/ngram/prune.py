"""lmtools ngram prune: leave out the n-grams that matter least (entropy pruning)."""

from lmtools.ngram import derived
from lmtools.verbs.ngram.estimate import NGRAM_MODEL, add_kenlm
from lmtools.verbs.numbers import amount


def arguments(parser):
    """Declare the action's options."""
    parser.add_argument("model", metavar="LM", help=NGRAM_MODEL)
    help_text = (
        "leave out n-grams each of which alone raises the model's perplexity by a smaller share, as"
        " 1e-8 (SRILM's ngram -prune)"
    )
    parser.add_argument("--threshold", required=True, type=amount, metavar="X", help=help_text)
    add_kenlm(parser)
    parser.add("--out", metavar="DIR", help="directory to write")


def run(args):
    """Prune, write, and say what is left."""
    description, before = derived.prune(args.model, args.out, args.threshold, args.kenlm)
    counts, were = (" ".join(map(str, sizes)) for sizes in (description.counts, before))
    print(f"{args.out}: {description.order}-gram model, n-grams {counts} of {were}")
