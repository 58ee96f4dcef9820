"""lmtools verify: whether lists, scores, weights and a text are those that a line signs."""

from functools import partial
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.formats import kaldi_text, read
from lmtools.rescoring import load_weights, of_system, read_scores, rescore_lists
from lmtools.rescoring.signing import BEGIN, SAID, compare_lines, parse_line, sign

SOFT = ("version",)  # what may differ where all that counts is the same


def arguments(parser):
    """Declare the verb's options."""
    parser.epilog = (
        "The lists are rescored again; the exit status is 1 where anything but the version differs."
    )
    help_text = (
        f"what `lmtools rescore --verbose` printed, {BEGIN}|..., or a file with it as its last"
    )
    parser.groups["input"].add_argument("--line", required=True, metavar="LINE", help=help_text)
    parser.add("--nbest", "--format", "--scores")
    parser.add("--weights", required=True, metavar="F.json", help="what `lmtools tune` wrote")
    help_text = "the chosen hypotheses, Kaldi text (default: those that are chosen again)"
    parser.groups["input"].add_argument("--hyp", metavar="F", help=help_text)


def run(args):
    """Rescore, compare, and say of each part whether it is as signed."""
    line = find_line(args.line)
    parse_line(line)
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
    rows = compare_lines(line, sign(nbests, columns, weights, texts))
    if args.hyp:
        rows.append(("choice", texts == {utt: " ".join(t.split()) for utt, t in again.items()}))
    for name, same in rows:
        about = SAID.get(name, "the text is what these scores and weights choose")
        print(f"{'as signed' if same else 'DIFFERENT':9}  {name}: {about}")
    wrong = [name for name, same in rows if not same and name not in SOFT]
    if wrong:
        raise UserError(f"{args.nbest}: not what was signed: {', '.join(wrong)} differ")


def find_line(given: str) -> str:
    """Return a line that is given, or the last one in a file."""
    if given.startswith(BEGIN) or not Path(given).is_file():
        return given
    lines = [line for line in Path(given).read_text().splitlines() if line.startswith(BEGIN + "|")]
    if not lines:
        raise UserError(f"{given}: has no line {BEGIN}|...; keep what rescore --verbose prints")
    return lines[-1]
