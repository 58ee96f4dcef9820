"""lmtools ngram quantize: the smallest form of a model, KenLM's quantised trie."""

from lmtools.ngram import derived
from lmtools.verbs.ngram.estimate import add_kenlm
from lmtools.verbs.numbers import from_zero


def arguments(parser):
    """Declare the action's options."""
    parser.add_argument("model", metavar="LM", help="directory of lmtools ngram, or an ARPA file")
    help_text = "of a probability, 2 to 25; 0: all that KenLM keeps (default: %(default)s)"
    parser.add_argument("--bits", type=from_zero, default=8, metavar="N", help=help_text)
    help_text = "of a back-off weight (default: those of --bits)"
    parser.add_argument("--backoff-bits", type=from_zero, metavar="N", help=help_text)
    help_text = "most leading bits of pointers to cut off; 0: none (default: %(default)s)"
    parser.add_argument("--pointer-bits", type=from_zero, default=22, metavar="N", help=help_text)
    add_kenlm(parser)
    parser.add("--out", metavar="DIR", help="directory to write")


def run(args):
    """Write, and say the size."""
    backoff = args.bits if args.backoff_bits is None else args.backoff_bits
    bits = {"bits": args.bits, "backoff_bits": backoff, "pointer_bits": args.pointer_bits}
    description = derived.quantize(args.model, args.out, **bits, kenlm=args.kenlm)
    size, bits = derived.file_size(args.out, description), description.facts["bits"]
    print(f"{args.out}: {description.order}-gram model in {size:,} bytes, {bits} bits")
