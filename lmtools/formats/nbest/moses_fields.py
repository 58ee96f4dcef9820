"""Parts that Moses and Marian N-best lists share: fields between `|||`, features like
`NAME= 1 2 NAME2= 3`, and lists numbered by their sentences.

A feature of one value keeps its name, the values of a longer one are named with an index: `LM0=
-41.3 TM0= -6.7 -1.2` is LM0, TM0_0 and TM0_1; old `lm: -41.3 -40.4` is lm0 and lm1. The total is
the score `am`, or `total` beside a feature of the name `am`. All lines have the same features, but
for sparse ones, where a format has them: features of one value that are 0 in lines without them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats import pieces
from lmtools.formats.checks import NUMBER, Utterances, components, number, write_lines
from lmtools.formats.nbest.moses_features import (
    default_layout,
    field_of,
    fill_absent,
    parse_features,
    total_name,
)
from lmtools.formats.units import spell_in_unit
from lmtools.types import EMPTY, TOTAL, Hypothesis, NBest

BAR = "|||"
COUNTED = re.compile(r"0|[1-9][0-9]{0,14}")  # a sentence number that has only one spelling
LONGEST_GAP = 10_000
OPTIONS = {
    "bpe": (
        "subword marks in the texts: subword_nmt (`@@ `), sentencepiece (`▁`) or none (the default:"
        " the texts are words)"
    ),
    "gaps": (
        "sentence numbers that are left out, as of failed sentences: empty lists (the default), or"
        " skip"
    ),
}


@dataclass(frozen=True)
class Row:
    """A line's fields: sentence, text, features, total verbatim ('' for none), the rest by name."""

    utt: str
    text: str
    features: str = ""
    total: str = ""
    extra: Mapping[str, str] = field(default_factory=lambda: EMPTY)


def read(
    path,
    bpe: str = "none",
    gaps: str = "empty",
    *,
    arrange: Callable[[list[str], str], Row],
    sparse: bool = False,
) -> Iterator[NBest]:
    """Read the lists in `path`, one by one; `arrange` makes a Row of a line's fields; with `sparse`
    a feature may be absent (0) in some lines. UserError with the line of anything malformed.
    """
    pieces.check_marks(bpe, "bpe")
    if gaps not in ("empty", "skip"):
        raise UserError(f"gaps={gaps}: no such way; known are empty, skip")
    utterances = Utterances()
    filled: set[str] = set()
    names, last = None, None
    lines = read_rows(path, arrange, bpe)
    for utt, group in groupby(fill_absent(lines, path) if sparse else lines, lambda row: row[1]):
        rows_of_id = list(group)
        where = f"{path}:{rows_of_id[0][0]}"
        utterances.add(utt, where)
        if utt in filled:
            raise UserError(
                f"{where}: sentence {utt} follows {last}; sort the lists by number, or read with"
                " the option gaps=skip"
            )
        for between in list_missing(last, utt, where) if gaps == "empty" else ():
            filled.add(between)
            yield NBest(between, ())
        nbest = NBest(utt, tuple(hyp for _, _, hyp in rows_of_id))
        names, last = components(nbest, names, where), utt
        yield nbest


def recognise(features: re.Pattern, place: int) -> Callable[[Path, str], bool]:
    """Return `recognises` of a format whose first line has `features` in the field at `place` and a
    number after it, or has no features to tell Moses from Marian.
    """

    def recognises(path: Path, first: str) -> bool:
        fields = [part.strip() for part in first.split(BAR)]
        if len(fields) < 4 or not NUMBER.fullmatch(fields[place + 1]):
            return False
        return bool(features.match(fields[place])) or (len(fields) == 4 and not fields[2])

    return recognises


def read_rows(
    path, arrange: Callable[[list[str], str], Row], bpe: str
) -> Iterator[tuple[int, str, Hypothesis]]:
    """Yield (line number, sentence, hypothesis) of every line that is not empty."""
    for count, line in read_lines(path):
        if line.strip():
            where = f"{path}:{count}"
            fields = [part.strip() for part in line.split(BAR)]
            if len(fields) < 2:
                raise UserError(
                    f"{where}: no `{BAR}` in the line; expected `sentence {BAR} text {BAR} features"
                    f" {BAR} total`"
                )
            row = arrange(fields, where)
            yield count, row.utt, build_hypothesis(row, bpe, where)


def build_hypothesis(row: Row, bpe: str, where: str) -> Hypothesis:
    """Return the hypothesis that one line describes."""
    scores, layout = parse_features(row.features, where)
    extra = {"layout": layout} if layout != default_layout(scores) else {}
    if row.total:
        name = TOTAL if "am" in scores else "am"
        if name in scores:
            raise UserError(f"{where}: a feature is called {name!r} besides the total; rename it")
        scores[name] = number(row.total, where, "the total")
    text = pieces.join_pieces(row.text, bpe)
    if bpe != "none" and row.text != text:
        extra["pieces"] = row.text
    return Hypothesis(text, scores, {**extra, **row.extra})


def list_missing(last: str | None, utt: str, where: str) -> Iterable[str]:
    """Return the sentence numbers between two that follow each other in a file."""
    if last is None or not (COUNTED.fullmatch(last) and COUNTED.fullmatch(utt)):
        return ()
    if int(utt) - int(last) > LONGEST_GAP:
        raise UserError(
            f"{where}: sentence {utt} follows {last}; number them without such gaps, or read with"
            " the option gaps=skip"
        )
    return map(str, range(int(last) + 1, int(utt)))


def write(nbests: Iterable[NBest], path, *, fields: Callable[[Row], list[str]]) -> None:
    """Write lists; scores of any name become features, `total`, or else `am`, the total. `fields`
    puts a Row's in order. An empty list has no line, which reading fills
    in between numbered ones.
    """

    def spell_list(nbest: NBest, where: str) -> Iterator[str]:
        if not nbest.hyps and not COUNTED.fullmatch(nbest.utt):
            raise UserError(
                f"{where}: has no hypothesis, and only numbered sentences may lack them here; drop"
                " it"
            )
        for hyp in nbest.hyps:
            parts = fields(row_of(nbest.utt, hyp))
            yield f" {BAR} ".join(check_plain(part, where) for part in parts)

    write_lines(nbests, path, spell_list)


def row_of(utt: str, hyp: Hypothesis) -> Row:
    """Return the fields that hold `hyp`."""
    text = " ".join(hyp.text.split())
    total = hyp.scores.get(total_name(hyp.scores))
    pieced = pieces.keep_spelling(text, hyp.extra.get("pieces", text))
    features = field_of(hyp.scores, hyp.extra.get("layout"))
    spelled = "" if total is None else spell_in_unit(total)
    return Row(utt, pieced, features, total=spelled, extra=hyp.extra)


def check_plain(text: str, where: str) -> str:
    """Return `text` on one line, if it can stand between bars."""
    if BAR in text:
        raise UserError(f"{where}: {text!a} holds `{BAR}`, which ends a field; write | as &#124;")
    return " ".join(text.split())
