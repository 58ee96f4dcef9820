"""lmtools correct: what a large language model makes of each list, as further hypotheses."""

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.base.options import fill
from lmtools.correction.lists import HELD, SHOWN, Corrector
from lmtools.evaluate.nbest import describe_new
from lmtools.formats import read, write
from lmtools.rescoring.margins import SOURCE
from lmtools.verbs.options import COMPUTING
from lmtools.verbs.parser import add_lm

EXAMPLES = (
    "lmtools correct --nbest dev.jsonl --lm hf:gemma --out dev.more.jsonl",
    "lmtools correct --nbest dev.jsonl --lm hf:gemma --free --out dev.free.jsonl",
)


def arguments(parser):
    parser.epilog = (
        "The model reads the first hypotheses of a list and writes what was said, one answer a"
        " list, of the words that the hypotheses have in their places. New answers stand behind the"
        f" list's own hypotheses, with the extra `source` ({HELD}) and the score `near` -1. Score"
        " the lists with a language model; `lmtools tune` finds the margin by which an answer has"
        " to win, and where answers do not clearly save errors none does."
    )
    parser.add("--nbest", "--format")
    add_lm(parser, help="language model that writes: hf:DIR, gguf:FILE or a server")
    parser.add("--free")
    help_text = "hypotheses of a list that the model reads (default: %(default)s)"
    parser.add("--depth", default=SHOWN, help=help_text)
    parser.add("--out", help="lists to write; - prints them")
    parser.add("--to", *COMPUTING)


def run(args):
    """Read, ask, write, and say what the lists could reach."""
    nbests = read(args.nbest, args.format)
    if any(SOURCE in hyp.extra and hyp.extra[SOURCE].startswith(HELD) for nbest in nbests
           for hyp in nbest.hyps):  # fmt: skip
        raise UserError(
            f"{args.nbest}: has answers of lmtools correct already; give the lists that it read"
        )
    corrector = Corrector.open(args.lm, fill(Computing, args), args.free, args.depth)
    lists = list(corrector.correct(nbests))
    write(lists, args.out, args.to)
    say_lines([*corrector.describe(), *describe_new(nbests, lists, args.out)])
