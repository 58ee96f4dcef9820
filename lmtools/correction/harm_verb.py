"""lmtools harm: how often a glossary or a correction changes what was right."""

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.grammar import parse_pairs
from lmtools.base.log import say, say_lines
from lmtools.base.options import fill
from lmtools.base.specs import LMSpec
from lmtools.correction.harm import Harm, HarmPlan
from lmtools.correction.lists import Corrector
from lmtools.correction.share import LEVEL
from lmtools.rescoring.margins import write_changes
from lmtools.rescoring.weights import Weights
from lmtools.text.blocks import read_text
from lmtools.verbs.numbers import share
from lmtools.verbs.options import COMPUTING, SEVERAL_LMS
from lmtools.verbs.parser import add_lm, add_phrases

SHOWN = 5  # changes that are printed

EXAMPLES = (
    "lmtools harm --text text.txt --phrases names.txt",
    "lmtools harm --text text.txt --phrases names.txt --most 0.9 --out changes.tsv",
)


def arguments(parser):
    parser.epilog = (
        "Every sentence counts as a recogniser's right answer, so every change is a false one. The"
        " sound decides nothing: new hypotheses have the first-pass scores of the sentence, which"
        " is harder than any recording. Without --weights the forms of a glossary that stand for"
        " its phrases are written out, and every new answer of --correct is taken; with --weights,"
        " near phrases and answers are chosen as lmtools rescore would, beyond the margin `near`."
    )
    help_text = "right text as your lists write it, one sentence on each line"
    parser.add("--text", required=True, help=help_text)
    add_phrases(parser)
    help_text = "a model that corrects, as --lm of `lmtools correct`"
    parser.add_argument("--correct", metavar="LM", help=help_text)
    parser.add("--free")
    help_text = "what `lmtools tune` wrote, with a margin `near`"
    parser.add("--weights", metavar="F.json", help=help_text)
    add_lm(parser, **SEVERAL_LMS, help="language model of each column of --weights")
    help_text = "end with status 1 if the bound on changed sentences is above this share (0 to 1)"
    parser.add_argument("--most", type=share, metavar="SHARE", help=help_text)
    help_text = "list of all changes to write: utt (the line), from, to, source, margin"
    parser.add("--out", required=False, metavar="F.tsv", help=help_text)
    parser.add(*COMPUTING)


def run(args) -> int:
    """Read, measure, and print counts with their bounds; 1 if --most is exceeded."""
    texts = [line for _, line in read_text(args.text) if line.strip()]
    if not texts:
        raise UserError(f"{args.text}: no sentences; give text, one sentence on each line")
    if args.free and not args.correct:
        raise UserError("--free: of which model? give --correct")
    computing = fill(Computing, args)
    example = "write for instance --lm lm=en-books-4gram"
    lms = parse_pairs(args.lm, "--lm", "NAME=LM", example, empty=True)
    corrector = None
    if args.correct:
        corrector = Corrector.open(args.correct, computing, args.free)
    weights = Weights.load(args.weights) if args.weights else None
    plan = HarmPlan(
        args.phrases,
        corrector,
        weights=weights,
        lms={name: LMSpec.parse(lm) for name, lm in lms.items()},
        computing=computing,
        path=args.weights or "weights",
    )
    harm, warnings = plan.measure(texts, args.text)
    say_lines(warnings)
    if args.out:
        write_changes(harm.changes, args.out)
    for line in describe(harm, args.text):
        print(line)
    if args.most is not None and harm.bound() > args.most:
        say(f"lmtools harm: the bound {harm.bound():.3%} is above --most {args.most:.3%}")
        return 1
    return 0


def describe(harm: Harm, source: str):
    """Yield counts, bounds, and the first changes."""
    yield (
        f"{source}: {harm.changed} of {harm.sentences} sentences changed; with {LEVEL:.0%}"
        f" confidence at most {harm.bound():.3%} of such sentences are (Clopper-Pearson)"
    )
    yield (
        f"{source}: {sum(harm.edits)} false edits in {sum(harm.words)} words; with {LEVEL:.0%}"
        f" confidence at most {harm.word_bound():.4%} of the words (Korn-Graubard)"
    )
    for change in harm.changes[:SHOWN]:
        yield f"{change.utt}: {change.source}: {change.first!r:.90} -> {change.chosen!r:.90}"
    if len(harm.changes) > SHOWN:
        yield f"and {len(harm.changes) - SHOWN} more, all of which --out lists"
