"""lmtools verify: whether lists, scores, weights and a text are those of a line of `rescore`
(lmtools.rescoring.lists).
"""

from functools import partial
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.formats import kaldi_text, read
from lmtools.rescoring.defaults import load_weights
from lmtools.rescoring.experiment import of_system, read_scores
from lmtools.rescoring.lists import BEGIN, rescore_lists, sign

SAID = {
    "lists": "utterances, hypotheses and their order",
    "first": "first-pass scores",
    "lms": "language models, their vocabularies, normalisers and options",
    "weights": "weights of features",
    "text": "chosen hypotheses",
    "metric": "what the weights were tuned for, and the normalisation of the count",
    "version": "the version of lmtools",
    "choice": "the text is what these scores and weights choose",
}
SOFT = ("version",)  # what may differ where all that counts is the same

CALL = "lmtools verify --nbest test.jsonl --scores lm=test.scores --weights weights.json --line"
EXAMPLES = (f"{CALL} rescore.log", f"{CALL} rescore.log --hyp t.txt")


def arguments(parser):
    parser.epilog = (
        "The lists are rescored again. The exit status is 1 if anything but the version differs."
    )
    help_text = f"the line {BEGIN}... of `lmtools rescore --verbose`, or a file that ends with it"
    parser.groups["input"].add_argument("--line", required=True, metavar="LINE", help=help_text)
    parser.add("--nbest", "--format", "--scores")
    parser.add(
        "--weights", required=True, metavar="F.json", help="weights that `lmtools tune` wrote"
    )
    help_text = "Kaldi text of the chosen hypotheses (default: choose them again)"
    parser.groups["input"].add_argument("--hyp", metavar="F", help=help_text)


def run(args):
    """Rescore, compare, and say of each part whether it is as signed."""
    signed = parse_line(find_line(args.line))
    nbests = read(args.nbest, args.format)
    columns, systems = read_scores(args.scores, None, nbests, args.nbest)
    weights = load_weights(args.weights, nbests, columns)
    place = partial(of_system, args.weights)
    warnings, chosen = rescore_lists(
        nbests, columns, systems, {None: weights}, source=args.nbest, place=place
    )
    say_lines(warnings)
    ((_, lists, doubts),) = chosen
    say_lines(doubts)
    again = {nbest.utt: nbest.hyps[0].text if nbest.hyps else "" for nbest in lists}
    texts = kaldi_text.read(args.hyp) if args.hyp else again
    found = parse_line(sign(nbests, columns, weights, texts))
    same = {name: signed[name] == found[name] for name in SAID if name in found}
    if args.hyp:
        same["choice"] = texts == {utt: " ".join(text.split()) for utt, text in again.items()}
    for name, fits in same.items():
        print(f"{'as signed' if fits else 'DIFFERENT':9}  {name}: {SAID[name]}")
    wrong = [name for name, fits in same.items() if not fits and name not in SOFT]
    if wrong:
        raise UserError(f"{args.nbest}: not what was signed: {', '.join(wrong)} differ")


def find_line(given: str) -> str:
    if given.startswith(BEGIN) or not Path(given).is_file():
        return given
    lines = [line for line in Path(given).read_text().splitlines() if line.startswith(BEGIN)]
    if not lines:
        raise UserError(f"{given}: has no line {BEGIN}...; keep what rescore --verbose prints")
    return lines[-1]


def parse_line(line: str) -> dict[str, str]:
    """Return the parts of a line by name; UserError for what is none."""
    # the metric may have colons of its own
    parts = dict(part.partition(":")[::2] for part in line.strip().split("|")[1:])
    if not line.startswith(BEGIN) or not SAID.keys() - {"choice"} <= parts.keys():
        raise UserError(
            f"{line.strip()[:60]!r}: no line of a rescoring; give what `lmtools rescore --verbose`"
            f" printed, {BEGIN}lists:...|version:..."
        )
    return parts
