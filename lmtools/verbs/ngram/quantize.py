"""lmtools ngram quantize: the smallest form of a model, KenLM's quantised trie."""

from lmtools.ngram import derived
from lmtools.verbs.ngram.estimate import NGRAM_MODEL, add_kenlm
from lmtools.verbs.options import flags_of
from lmtools.verbs.parser import add_settings, read_settings


def arguments(parser):
    """Declare the action's options."""
    parser.add_argument("model", metavar="LM", help=NGRAM_MODEL)
    parser.add_argument("--bits", **flags_of(derived.Quantisation)["--bits"] | {"metavar": "N"})
    add_settings(parser, derived.Quantisation, ["backoff_bits", "pointer_bits"])
    add_kenlm(parser)
    parser.add("--out", metavar="DIR", help="directory to write")


def run(args):
    """Write, and say the size."""
    settings = read_settings(args, derived.Quantisation)
    quantisation = derived.Quantisation(args.bits, **settings)
    description = derived.quantize(args.model, args.out, quantisation, kenlm=args.kenlm)
    size, bits = derived.file_size(args.out, description), description.facts["bits"]
    print(f"{args.out}: {description.order}-gram model in {size:,} bytes, {bits} bits")
