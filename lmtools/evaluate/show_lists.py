"""N-best lists in lines for people: each hypothesis beside its errors and scores, with what differs
from the reference marked in its text.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from lmtools.base.errors import UserError, escape
from lmtools.evaluate.edits import Alignment
from lmtools.evaluate.metrics import find_aligner
from lmtools.types import NBest

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


def list_lines(nbest: NBest, metric: str, marks: Marks, depth: int) -> Iterator[str]:
    """Yield the lines of a list: its id, what hypotheses are compared with (the reference, or
    without one the first hypothesis) and a row for each of the first `depth` hypotheses, of rank,
    errors, scores and text.

    What would move the cursor or not be seen is escaped. UserError for a metric that aligns texts
    with alternatives.
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
    if not isinstance(alignment, Alignment):
        raise UserError(f"--metric {metric}: aligns no words or characters as they are; take wer")
    there, here = measure.split(base), measure.split(text)
    counts = alignment.counts
    numbers = {"S": counts.substitutions, "D": counts.deletions, "I": counts.insertions}
    errors = " ".join(f"{number}{letter}" for letter, number in numbers.items() if number)
    glue = " " if measure.split("a b") == ["a", "b"] else ""
    return errors or "=", glue.join(mark_units(alignment, there, here, marks))


def mark_units(
    alignment: Alignment, there: Sequence[str], here: Sequence[str], marks: Marks
) -> Iterator[str]:
    """Yield the units of a hypothesis, `here`, and among them those of the reference, `there`, that
    it lacks. Without colours what a substitution replaces is shown, too.
    """
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
