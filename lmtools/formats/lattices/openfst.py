"""OpenFst's text of one lattice, as fstprint writes it: `source target input output weight` an arc,
`state weight` a final state.

The word is the output symbol; an input symbol that differs is kept as the extra `input`. Weights
are costs (negative logs, as in the tropical and log semirings) and become `am`. Weights of One are
left out. A state whose weight is `Infinity` is not final: so states without arcs are listed. The
first line's first state is the start. Lines of acceptors (fstprint --acceptor) have one symbol; a
file whose arcs all have four columns could be either: it is an acceptor if the fourth is a number
everywhere and somewhere differs from the third, unless the option acceptor=yes or no says it. With
symbols=FILE (lines `symbol id`) labels are ids, 0 is no word; without it they are symbols and
`<eps>` is no word.
"""

import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats.kaldi_io import Stream
from lmtools.formats.kaldi_tables import OPENFST
from lmtools.formats.kaldi_tables import read_symbols as symbol_table
from lmtools.formats.lattices import common
from lmtools.formats.lattices.common import (
    check_states,
    negate,
    one_total,
    parse_number,
    parse_real,
    spell_number,
)
from lmtools.lattice.order import arcs_by_state
from lmtools.types import Arc, Final, Lattice

SUMMARY = "OpenFst's text with symbols or ids: a file, or a directory of them"
OPTIONS = {
    "symbols": "file with lines `symbol id`, for labels that are ids",
    "acceptor": "yes or no: whether arcs have one symbol",
}
SUFFIXES = (".fst.txt", ".fst", ".txt")
NULL = "<eps>"
FIRST = re.compile(r"\d+\s+\d+\s+\S+(\s+\S+)?(\s+[-+\d.einfty]+)?", re.ASCII | re.IGNORECASE)
ROW = tuple[int, list[str]]
MERGE = ("am", ())  # the format has no other scores


def recognises(path: Path, first: str) -> bool:
    """Return whether the first line (in a directory, of the first file) is an arc and symbols."""
    first = common.opening(path, SUFFIXES, first)
    return FIRST.fullmatch(first.strip()) is not None and "," not in first


def read(path, symbols: str | None = None, acceptor: str | None = None) -> Iterator[Lattice]:
    """Read the lattice in the file `path`, or those of a directory."""
    words = None if symbols is None else {0: NULL, **symbol_table(symbols)}
    if acceptor not in (None, "yes", "no"):
        raise UserError(f"{path}: acceptor={acceptor}; expected yes or no")
    for utt, file in common.files(path, SUFFIXES):
        rows = [(number, line.split()) for number, line in read_lines(file) if line.strip()]
        columns = 3 if (one_symbol(rows) if acceptor is None else acceptor == "yes") else 4
        yield build_lattice(utt, rows, columns, words=words, path=file)


def one_symbol(rows: list[ROW]) -> bool:
    """Return whether the arcs of a file have one symbol each, as far as their columns tell."""
    widths = {len(fields) for _, fields in rows} - {1, 2}
    if widths != {4}:
        return 3 in widths
    pairs = [fields[2:] for _, fields in rows if len(fields) == 4]
    return all(common.REAL.fullmatch(weight) for _, weight in pairs) and any(
        symbol != weight for symbol, weight in pairs
    )


def build_lattice(utt: str, rows: list[ROW], columns: int, words, path) -> Lattice:
    """Return the lattice of a file's rows, of `columns` before the weight of an arc."""
    if not rows:
        raise UserError(f"{path}: empty; give the text of one lattice")
    arcs, finals = [], {}
    for number, fields in rows:
        where = f"{path}:{number}"
        source = parse_number(fields[0], where, "a state")
        if len(fields) <= 2:
            if source in finals:
                raise UserError(
                    f"{where}: state {source} is final a second time; keep one of the lines"
                )
            finals[source] = Final(source, {"am": parse_cost(fields[1:], where)})
        elif len(fields) in (columns, columns + 1):
            names = [find_symbol(label, words, where) for label in fields[2:columns]]
            extra = {"input": names[0]} if names[0] != names[-1] else {}
            word = None if names[-1] == NULL else names[-1]
            target, score = (
                parse_number(fields[1], where, "a state"),
                parse_cost(fields[columns:], where),
            )
            arcs.append(Arc(source, target, word, {"am": score}, extra=extra))
        else:
            raise UserError(
                f"{where}: {len(fields)} columns; expected {columns} or {columns + 1} an arc, 1 or"
                " 2 a final state"
            )
    ends = [end for end in finals.values() if end.scores["am"] > -math.inf]
    states = 1 + max([*finals, *(state for arc in arcs for state in (arc.source, arc.target))])
    states = check_states(states, len(rows), path)
    return Lattice.of(utt, states, int(rows[0][1][0]), arcs, finals=ends)


def parse_cost(fields: list[str], where: str) -> float:
    """Return the score that a weight is, 0 if it was left out."""
    if fields and "," in fields[0]:
        raise UserError(
            f"{where}: the weight {fields[0][:40]!r} has several parts; read lattices of Kaldi as"
            " kaldi"
        )
    return negate(parse_real(fields[0], where, "a weight")) if fields else 0.0


def find_symbol(label: str, words: Mapping[int, str] | None, where: str) -> str:
    if words is None:
        return label
    number = parse_number(label, where, "a label")
    if number not in words:
        raise UserError(
            f"{where}: label {number} is not in the symbol table; give the right one with symbols="
        )
    return words[number]


def write(lattices: Iterable[Lattice], path, symbols: str | None = None) -> None:
    """Write one lattice to `*.txt`, or any number as `UTT.fst.txt`; with `symbols`, label ids.

    Scores become the one weight (see `one_total`); times and extras but `input` have no place.
    """
    ids = (
        None
        if symbols is None
        else {word: number for number, word in symbol_table(symbols).items()} | {NULL: 0}
    )
    suffix = (
        ".txt" if Path(path).suffix == ".txt" or ".txt" in Path(path).suffixes[-2:] else ".fst.txt"
    )
    common.write_files(lattices, path, suffix, partial(spell_text, ids=ids))


def spell_text(lattice: Lattice, where: str, ids: Mapping[str, int] | None) -> str:
    """Return the text of a lattice, arcs sorted by source from the start on."""
    scores, final_scores = (column.tolist() for column in one_total(lattice, where))
    common.refuse_null(lattice.words, NULL, where)
    finals = dict(zip(lattice.finals.tolist(), final_scores, strict=True))
    inputs = lattice.extra.get("input", ("",) * len(scores))
    leaving, target = arcs_by_state(lattice.source, lattice.states), lattice.target.tolist()
    lines = []
    for state in [
        lattice.start,
        *(state for state in range(lattice.states) if state != lattice.start),
    ]:
        for arc in leaving[state]:
            word = NULL if lattice.words[arc] is None else lattice.words[arc]
            labels = [find_label(name, ids, where) for name in (inputs[arc] or word, word)]
            lines.append(
                "\t".join([str(state), str(target[arc]), *labels, spell_weight(scores[arc])])
            )
        if state in finals:
            lines.append(f"{state}\t{spell_weight(finals[state])}")
        elif not leaving[state]:
            lines.append(f"{state}\tInfinity")
    return "".join(line + "\n" for line in lines)


def find_label(word: str, ids: Mapping[str, int] | None, where: str) -> str:
    if ids is None:
        return word
    if word not in ids:
        raise UserError(
            f"{where}: word {word!r} is not in the symbol table; add it, or write without symbols="
        )
    return str(ids[word])


def spell_weight(score: float) -> str:
    value = spell_number(negate(score))
    if value.lstrip("-") in ("inf", "nan"):
        return value.replace("inf", "Infinity").replace("nan", "BadNumber")
    return value


COMPACT, PLAIN = b"compactlattice44", b"lattice4"
SYMBOLS = 3  # the flags that say that symbol tables follow the header
MOST = 1 << 31
HEAD, COSTS, INT, LONG, LABELS = (
    struct.Struct(form) for form in ("<iiQqqq", "<ff", "<i", "<q", "<ii")
)
Weight = tuple[float, float, str]  # graph cost, acoustic cost, transition ids joined by _


@dataclass(frozen=True)
class Automaton:
    """A lattice's rows in Kaldi's form: arcs (source, target, input, output, weight), finals."""

    compact: bool
    start: int
    states: int
    arcs: Sequence[tuple[int, int, int, int, Weight]] = ()
    finals: Sequence[tuple[int, Weight]] = ()


def read_binary(stream: Stream, where: str) -> Automaton:
    """Read the automaton at which `stream` stands; UserError if it is another kind, or damaged."""
    if stream.read(4) != OPENFST:
        raise UserError(
            f"{where}: neither a binary lattice nor its text; give an archive of lattices"
        )
    kinds = [stream.read(min(INT.unpack(stream.read(4))[0] & 0xFF, 64)) for _ in range(2)]
    if kinds[0] != b"vector" or kinds[1] not in (COMPACT, PLAIN):
        raise UserError(
            f"{where}: a binary {kinds[0]!a} with weights {kinds[1]!a}; expected Kaldi's compact or"
            " plain lattice"
        )
    _, flags, _, start, states, _ = HEAD.unpack(stream.read(HEAD.size))
    if flags & SYMBOLS:
        raise UserError(
            f"{where}: holds symbol tables; write it with Kaldi's lattice-copy, or without them"
        )
    if not -1 <= start < max(states, 1) or not 0 <= states < MOST:
        raise UserError(f"{where}: starts in state {start} of {states}; write or fetch it again")
    compact = kinds[1] == COMPACT
    arcs, finals = [], []
    for state in range(states):
        last = read_weight(stream, compact)
        if last[:2] != (float("inf"), float("inf")):
            finals.append((state, last))
        count = LONG.unpack(stream.read(8))[0]
        if not 0 <= count < MOST:
            raise UserError(f"{where}: state {state} has {count} arcs; write or fetch it again")
        for _ in range(count):
            labels = LABELS.unpack(stream.read(8))
            costs = read_weight(stream, compact)
            target = INT.unpack(stream.read(4))[0]
            if not 0 <= target < states:
                raise UserError(
                    f"{where}: an arc leads to state {target} of {states}; write or fetch it again"
                )
            arcs.append((state, target, *labels, costs))
    return Automaton(compact, start, states, arcs=arcs, finals=finals)


def read_weight(stream: Stream, compact: bool) -> Weight:
    graph, acoustic = COSTS.unpack(stream.read(8))
    if not compact:
        return graph, acoustic, ""
    count = INT.unpack(stream.read(4))[0]
    ids = struct.unpack(f"<{count}i", stream.read(4 * count)) if 0 < count < MOST // 4 else ()
    return graph, acoustic, "_".join(map(str, ids))
