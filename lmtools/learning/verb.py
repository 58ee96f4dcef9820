"""lmtools confusions: what a recogniser mishears; lmtools network undo: hypotheses without that."""

from lmtools.base.log import say, say_lines
from lmtools.evaluate.nbest import describe_new
from lmtools.formats import read, write
from lmtools.formats.confusions import Confusion, read_confusions, write_confusions
from lmtools.learning.confusions import estimate, pair_lists, undo_confusions
from lmtools.types import NBest

EXAMPLES = (
    "lmtools confusions --nbest dev.jsonl --out confusions.tsv",
    "lmtools confusions --nbest dev.jsonl --out -",
)


def arguments(parser):
    parser.epilog = (
        "The first hypothesis of each list is aligned with its reference. A line has the words that"
        " were heard, those that were said (up to three; either may be empty), how often, of how"
        " many times that they were heard; and in how many places of held-out lists, fifths in the"
        " order of the file, it was tried and right. `lmtools network undo` makes hypotheses of"
        " them, and the setting lists.confusions of `lmtools train` corrupts references by them."
    )
    parser.add("--nbest", "--format")
    parser.add("--out", help="confusions to write, columns with tabs between them; - prints them")


def run(args):
    """Read, estimate, write, and say how precise they are."""
    confusions = estimate(pair_lists(read(args.nbest, args.format), args.nbest))
    write_confusions(confusions, args.out)
    say(describe(confusions, args.out))


def describe(confusions: list[Confusion], path) -> str:
    """Return how many confusions there are, and how often they were right in held-out lists."""
    tested, right = (sum(getattr(one, name) for one in confusions) for name in ("tested", "right"))
    share = f", {right / tested:.1%} right" if tested else ""
    return (
        f"{path}: {len(confusions)} confusions; tried in {tested} places of held-out lists{share}"
    )


def declare_undo(parser):
    """Add hypotheses with what was said in the place of what was heard, by confusions, for language
    models to score and `lmtools tune` to weigh.
    """
    parser.add("--nbest", "--format")
    help_text = "what `lmtools confusions` or `lmtools learn` wrote"
    parser.add_argument("--confusions", required=True, metavar="F.tsv", help=help_text)
    parser.add("--depth", default=5, help="most new hypotheses of a list (default: %(default)s)")
    parser.add("--out", help="lists to write, new hypotheses with the score `undone` below 0")
    parser.add("--to")


def undo(args):
    """Read, add, write, and say what the lists could reach."""
    nbests: list[NBest] = list(read(args.nbest, args.format))
    lists = list(undo_confusions(nbests, read_confusions(args.confusions), args.depth))
    write(lists, args.out, args.to)
    say_lines(describe_new(nbests, lists, args.out))
