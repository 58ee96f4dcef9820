"""lmtools ngram convert: an ARPA file of any dialect as KenLM reads it."""

from lmtools.base.log import say, say_lines
from lmtools.ngram.convert import convert
from lmtools.verbs.ngram.estimate import add_kenlm


def arguments(parser):
    """Declare the action's options."""
    help_text = (
        "ARPA file (.gz, .xz, .bz2): text before \\data\\, blanks for tabs, a byte-order mark, CR"
        " line ends, no <s>, no \\end\\ do not matter"
    )
    parser.add_argument("model", metavar="IN", help=help_text)
    help_text = "F.arpa, F.arpa.gz, or KenLM's binary form F.bin (needs its build_binary)"
    parser.add_argument("out", metavar="OUT", help=help_text)
    add_kenlm(parser)
    parser.groups["output"].description = None  # no directory


def run(args):
    """Convert, and say what the file lacks and how large it is."""
    model, lacks = convert(args.model, args.out, args.kenlm)
    say_lines(lacks)
    counts = " ".join(map(str, model.counts))
    say(f"{args.out}: {model.order}-gram model, n-grams {counts}")
