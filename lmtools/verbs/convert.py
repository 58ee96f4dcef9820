"""lmtools convert: N-best lists from one format to another, with references attached, cut or merged on the way."""

import argparse
import sys

from lmtools.errors import UserError
from lmtools.formats import FORMATS, detect, kaldi_text, lists
from lmtools.formats import read as read_nbests


def arguments(parser):
    """Declare the verb's options."""
    known = "; ".join(f"{name}: {form.about}" for name, form in FORMATS.items())
    parser.epilog = f"Formats are {known}.".replace("%", "%%")
    parser.add_argument("input", metavar="IN", help="file or directory; - is standard input")
    parser.add_argument("output", metavar="OUT", help="file or directory; - is standard output")
    parser.add_argument("--from", dest="source", choices=FORMATS, help="format of IN (default: recognised)")
    parser.add_argument("--to", dest="target", choices=FORMATS, default="jsonl", help="format of OUT (default: %(default)s)")
    parser.add_argument("--ref", metavar="FILE", help="Kaldi text with the references")
    parser.add_argument("--depth", type=positive, metavar="N", help="keep the first N hypotheses of each list")
    parser.add_argument("--dedup", action="store_true", help="merge hypotheses of the same words, keeping the best rank")


def positive(text: str) -> int:
    """A whole number from 1, for argparse."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is below 1")
    return value


def run(args):
    """Read, edit, write, and say on standard error what was written."""
    nbests = read_nbests(args.input, args.source or detect(args.input))
    if not nbests:
        raise UserError(f"{args.input}: no utterances; give the recogniser's N-best lists")
    if args.ref:
        nbests = lists.attach(nbests, kaldi_text.read(args.ref), args.input, args.ref)
    if args.dedup:
        nbests = lists.dedup(nbests)
    if args.depth:
        nbests = lists.cut(nbests, args.depth)
    FORMATS[args.target].write(nbests, args.output)
    print(f"{args.output}: {len(nbests)} utterances, {sum(len(n.hyps) for n in nbests)} hypotheses", file=sys.stderr)
