"""`lmtools show`: N-best lists in a terminal, each hypothesis beside its errors and scores, with
what differs from the reference marked in its text.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

from lmtools.base.errors import UserError, escape
from lmtools.base.log import say_lines
from lmtools.evaluate.edits import Alignment
from lmtools.evaluate.fit import advise_metric
from lmtools.evaluate.metrics import find_aligner
from lmtools.formats import edits, stream
from lmtools.formats.lists import join_refs
from lmtools.types import NBest
from lmtools.verbs.numbers import positive
from lmtools.verbs.parser import add_normaliser, add_references, normaliser_of

NO_COLOUR, COLOUR = "NO_COLOR", "FORCE_COLOR"  # variables of the environment, as no-color.org
# What stands around units that a hypothesis lacks (D), has too many (I) or in the place of others
# (S): marks as wdiff and `git diff --word-diff` have them, or ECMA-48's colours: red and crossed
# out, green, yellow.
Marks = Mapping[str, tuple[str, str]]
PLAIN: Marks = MappingProxyType({"D": ("[-", "-]"), "I": ("{+", "+}"), "S": ("", "")})
END = "\x1b[0m"
COLOURS: Marks = MappingProxyType(
    {"D": ("\x1b[9;31m", END), "I": ("\x1b[32m", END), "S": ("\x1b[33m", END)}
)
DIGITS = 2  # of scores

EXAMPLES = (
    "lmtools show --nbest dev.jsonl --count 3 --depth 5",
    "lmtools show --nbest dev.jsonl u2 --ref dev.ref --metric cer",
)


def arguments(parser):
    parser.epilog = (
        "Missing words are red and crossed out, extra words green, substituted words yellow. In a"
        " pipe, or with $NO_COLOR, they are [-words-] and {+words+}; $FORCE_COLOR keeps the colours"
        " in a pipe. Without references, hypotheses are compared with the first one."
    )
    parser.add("--nbest")
    text = "utterances to show (default: the first ones)"
    parser.add_argument("utts", metavar="ID", nargs="*", help=text)
    text = "number of lists to show if no ID is given (default: %(default)s)"
    parser.add_argument("--count", metavar="N", type=positive, default=10, help=text)
    parser.add(
        "--depth",
        default=10,
        help="number of hypotheses to show of each list (default: %(default)s)",
    )
    parser.add("--format")
    add_references(parser)
    parser.add(
        "--metric",
        help="metric whose words, characters or tokens are compared (default: %(default)s)",
    )
    add_normaliser(parser, "applied to hypotheses and references before they are compared")


def run(args) -> None:
    marks = COLOURS if wants_colours(sys.stdout) else PLAIN
    normalise = normaliser_of(args)
    chosen = [edits.rewrite_list(one, hyps=normalise, refs=normalise) for one in choose_lists(args)]
    refs, hyps = ((nbest.ref or "" for nbest in chosen), (h.text for n in chosen for h in n.hyps))
    say_lines(advise_metric(refs, hyps, args.metric, args.nbest))
    for number, nbest in enumerate(chosen):
        lines = list_lines(nbest, args.metric, marks, args.depth)
        print("\n" * (number > 0) + "\n".join(lines))


def choose_lists(args) -> Iterator[NBest]:
    """Yield the lists asked for, with references, no more than shown; else UserError."""
    lists = join_references(args)
    if not args.utts:
        chosen = list(islice(lists, args.count))
        if not chosen:
            raise UserError(f"{args.nbest}: no utterances; give the recogniser's N-best lists")
        yield from chosen
        return
    wanted = dict.fromkeys(args.utts)
    for nbest in lists:
        if nbest.utt in wanted:
            del wanted[nbest.utt]
            yield nbest
        if not wanted:
            return
    missing = ", ".join(wanted)
    raise UserError(f"{args.nbest}: no list of {missing}; give ids that are there")


def join_references(args) -> Iterator[NBest]:
    """Yield the lists with the references of --ref or --ref-lines, or with their own."""
    lists = stream(args.nbest, args.format or ("jsonl" if args.nbest == "-" else None))
    if not (args.ref or args.ref_lines):
        yield from lists
        return
    for nbest, ref in join_refs(lists, args.ref, args.ref_lines, args.nbest):
        yield NBest(nbest.utt, nbest.hyps, ref, nbest.extra)


def wants_colours(out) -> bool:
    """Return whether colours go to `out`: to a terminal, unless the environment says otherwise."""
    if os.environ.get(NO_COLOUR):
        return False
    return bool(os.environ.get(COLOUR)) or (out.isatty() and os.environ.get("TERM") != "dumb")


def list_lines(nbest: NBest, metric: str, marks: Marks, depth: int) -> Iterator[str]:
    """Yield the lines of a list: id, what hypotheses are compared with (the reference, else the
    first), and rank, errors, scores, text of the first `depth`, unseen characters escaped.
    UserError for a metric that aligns alternatives.
    """
    base = nbest.ref
    if base is None and nbest.hyps:
        base = nbest.hyps[0].text
    name = "ref" if nbest.ref is not None else "1"
    hyps = nbest.hyps[:depth]
    scores = list(dict.fromkeys(score for hyp in hyps for score in hyp.scores))
    rows = [["", f"vs {name}", *map(escape, scores), ""]]
    if nbest.ref is not None:
        rows.append(["ref", "", *[""] * len(scores), escape(nbest.ref)])
    for rank, hyp in enumerate(hyps, 1):
        errors, text = mark_errors(base or "", hyp.text, metric, marks)
        values = (hyp.scores.get(score) for score in scores)
        shown = ["" if value is None else f"{value:.{DIGITS}f}" for value in values]
        rows.append([str(rank), errors, *shown, text])
    yield escape(nbest.utt)
    yield from align_columns(rows)
    if more := len(nbest.hyps) - len(hyps):
        yield f"  ... {more} more"


def align_columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows of cells as lines, all columns but the last flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    for *cells, text in rows:
        padded = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        yield "  ".join(["", *padded, text]).rstrip()


def mark_errors(base: str, text: str, metric: str, marks: Marks) -> tuple[str, str]:
    """Return the errors of a text against `base`, as `1S 2D`, and the text with these marked."""
    measure = find_aligner(metric)
    alignment = measure.align(base, text)
    there, here = measure.split(base), measure.split(text)
    counts = alignment.counts
    numbers = {"S": counts.substitutions, "D": counts.deletions, "I": counts.insertions}
    errors = " ".join(f"{number}{letter}" for letter, number in numbers.items() if number)
    glue = " " if measure.split("a b") == ["a", "b"] else ""
    return errors or "=", glue.join(mark_units(alignment, there, here, marks))


def mark_units(
    alignment: Alignment, there: Sequence[str], here: Sequence[str], marks: Marks
) -> Iterator[str]:
    """Yield a hypothesis' units and, among them, the reference's that it lacks."""
    i = j = 0
    for step in alignment.steps:
        old = escape(there[i]) if step != "I" else ""
        new = escape(here[j]) if step != "D" else ""
        i, j = i + (step != "I"), j + (step != "D")
        if step == "C":
            yield new
        elif step == "S" and marks is PLAIN:
            yield old.join(marks["D"]) + new.join(marks["I"])
        else:
            yield (old if step == "D" else new).join(marks[step])
