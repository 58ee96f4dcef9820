"""Moses' PLF, a lattice a line: `((('tal', -0.73, 1),('tardes', -2.55, 2),),(('ves', -2.08, 1),),)`

A line is a tuple of columns, a column a tuple of arcs (word, scores, distance to the column where
the arc ends). The first number is read as `am`, further ones as `f1`, `f2` ...; `*EPS*` is no word.
The path ends after the last column. `()` has no columns, and neither has an empty line (header
`line`: "empty", to be written back). Utterance ids are line numbers from 1.

Writing numbers states that are not in such an order anew, leaves out what the start does not lead
to, and gives several ends one.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats.lattices.common import (
    check_states,
    negate,
    one_end,
    one_total,
    parse_number,
    parse_real,
    plain_end,
    refuse_null,
    spell_number,
    write_rows,
)
from lmtools.lattice.order import trim
from lmtools.types import TOTAL, Arc, Final, Lattice

SUMMARY = "Moses' PLF, one lattice a line"
NULL = "*EPS*"
ARC = re.compile(r"""\s*\(\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\s*,([^()'"]*?),?\s*\)\s*,?""")
OPEN, CLOSE, EXTRA = re.compile(r"\s*\("), re.compile(r"\s*\)\s*,?"), re.compile(r"f[1-9]\d*")
MERGE = ("am", ())  # the format has no other scores


def recognises(path: Path, first: str) -> bool:
    """Return whether the first line begins as only such tuples do, or the name says it."""
    return ".plf" in path.suffixes or re.match(r"\(\s*\(\s*\(\s*['\"]", first) is not None


def read(path) -> Iterator[Lattice]:
    """Read the lattices of `path`, line by line."""
    for number, line in read_lines(path):
        where = f"{path}:{number}"
        arcs, states = parse_line(line, where)
        check_states(states, len(arcs), where)
        header = {} if line.strip() else {"line": "empty"}
        finals = [Final(states - 1, {"am": 0.0})]
        yield Lattice.of(str(number), states, 0, arcs, finals=finals, header=header)


def parse_line(line: str, where: str) -> tuple[list[Arc], int]:
    """Parse the arcs of a line, and the number of states: one a column, and the end."""
    if not line.strip():
        return [], 1
    arcs: list[Arc] = []
    at, column = skip_pattern(OPEN, line, 0, where), 0
    while not (closing := CLOSE.match(line, at)):
        at = skip_pattern(OPEN, line, at, where)
        while match := ARC.match(line, at):
            arcs.append(parse_arc(match[1], match[2].split(","), column, where))
            at = match.end()
        at = skip_pattern(CLOSE, line, at, where)
        column += 1
    if line[closing.end() :].strip():
        raise report_wrong(line, closing.end(), where)
    if any(arc.target > column for arc in arcs):
        raise UserError(
            f"{where}: an arc leads behind the end of the lattice; correct its distance"
        )
    return arcs, column + 1


def skip_pattern(pattern: re.Pattern, line: str, at: int, where: str) -> int:
    """Return the place behind the match of `pattern` at `at`; UserError without one."""
    match = pattern.match(line, at)
    if not match:
        raise report_wrong(line, at, where)
    return match.end()


def report_wrong(line: str, at: int, where: str) -> UserError:
    """Return the error on a line that cannot be understood from `at` on."""
    return UserError(
        f"{where}: {line[at : at + 40]!a} at character {at + 1}; expected ((('word', score,"
        " distance), ...), ...)"
    )


def parse_arc(word: str, numbers: list[str], column: int, where: str) -> Arc:
    word = re.sub(r"\\(.)", r"\1", word[1:-1])
    *values, distance = (number.strip() for number in numbers)
    step = parse_number(distance, where, "a distance")
    if not step:
        raise UserError(f"{where}: the arc of {word!a} leads nowhere; give a distance of 1 or more")
    if not word or any(c.isspace() for c in word):
        raise UserError(f"{where}: the word {word!a} is empty or holds white space; correct it")
    names = ["am", *(f"f{i}" for i in range(1, len(values)))]
    scores = {
        name: parse_real(value, where, "a score")
        for name, value in zip(names, values, strict=False)
    }
    return Arc(column, column + step, None if word == NULL else word, scores)


def write(lattices: Iterable[Lattice], path) -> None:
    """Write lattices, one a line; their ids are not kept, as lines have numbers."""
    write_rows(lattices, path, spell_text)


def order_states(lattice: Lattice, where: str) -> Lattice:
    """Order the states so that arcs lead up from the start, 0, to one end."""
    in_order = (
        lattice.start == 0
        and plain_end(lattice) == lattice.states - 1
        and (lattice.source < lattice.target).all()
    )
    return lattice if in_order else trim(replace(one_end(lattice, where), times=None))


def spell_text(lattice: Lattice, where: str) -> str:
    lattice = order_states(lattice, where)
    if lattice.header.get("line") == "empty" and lattice.states == 1:
        return ""
    refuse_null(lattice.words, NULL, where)
    names = [name for name in lattice.scores if name == "am" or EXTRA.fullmatch(name)]
    if len(names) < len(lattice.scores) or "am" not in names or TOTAL in lattice.scores:
        columns = [one_total(lattice, where)[0].tolist()]
    else:
        columns = [
            lattice.scores[name].tolist()
            for name in sorted(
                names, key=lambda name: (len(name), name) if name != "am" else (0, "")
            )
        ]
    cells: list[list[str]] = [[] for _ in range(lattice.states - 1)]
    for source, target, word, *scores in zip(
        lattice.source.tolist(), lattice.target.tolist(), lattice.words, *columns, strict=True
    ):
        quoted = re.sub(r"(['\\])", r"\\\1", NULL if word is None else word)
        values = "".join(f"{spell_number(negate(negate(score)))}, " for score in scores)
        cells[source].append(f"('{quoted}', {values}{target - source}),")
    return "(" + "".join(f"({''.join(cell)})," for cell in cells) + ")"
