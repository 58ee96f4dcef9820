"""Confusion networks, one a line: `the:3:0.909 that:3:0.069 phone:4:0.976` (word:slot:posterior).

Slots become states one after the other, whatever their numbers (kept as the extra `slot` where they
differ from the state's), and the logarithm of a posterior becomes `am`. `*DELETE*`, `*EPS*` and
`<eps>` are no word. An empty line is the empty sentence. Utterance ids are line numbers from 1.

Where the posteriors of a slot sum to less than 1, words were pruned (missing=nothing), or the
writer leaves out what is no word: then the rest becomes an arc without a word (missing=epsilon).
Networks with an entry for no word are taken for pruned. Without one both are possible; a slot of
which more is missing than its best word has, where the readings differ in the best sentence, is
refused until the option says which it is.
"""

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats.lattices.common import (
    one_total,
    parse_number,
    parse_real,
    refuse_null,
    write_rows,
)
from lmtools.types import Arc, Final, Lattice

SUMMARY = "confusion networks, one a line of word:slot:posterior"
OPTIONS = {
    "missing": (
        "what posteriors lack to 1: epsilon, that of no word, or nothing, as words were pruned"
        " (default: nothing; refused where it decides and no slot has an entry for no word)"
    )
}
NULL = "*DELETE*"
NULLS = {NULL, "*EPS*", "<eps>"}
FIRST = re.compile(r"(\S+:\d+:[\d.]+(e-?\d+)?(\s+|$))+", re.ASCII)
MERGE = ("am", ())  # the format has no other scores


def recognises(path: Path, first: str) -> bool:
    return FIRST.fullmatch(first.strip()) is not None


def read(path, missing: str | None = None) -> Iterator[Lattice]:
    """Read confusion networks; UserError, also where only `missing` can explain a slot."""
    if missing not in (None, "nothing", "epsilon"):
        raise UserError(f"{path}: missing={missing}; expected epsilon or nothing")
    explained = missing is not None
    for number, line in read_lines(path):
        where = f"{path}:{number}"
        slots = parse_slots(line, where)
        explained = explained or any(arc.word is None for arcs in slots.values() for arc in arcs)
        arcs = []
        for state, (slot, entries) in enumerate(slots.items()):
            shares = [math.exp(min(arc.scores["am"], 700)) for arc in entries]
            rest = 1 - sum(shares)
            if not explained and rest > max(shares):
                explained = holds_epsilons(path)
            if not explained and rest > max(shares):
                raise UserError(
                    f"{where}: the posteriors of slot {slot} sum to {1 - rest:.3g}, and what is"
                    " missing has more than any word; read it as wcn:missing=epsilon if that is no"
                    " word, as wcn:missing=nothing if words were pruned"
                )
            arcs += entries
            if missing == "epsilon" and rest > 1e-9:
                score = {"am": math.log(rest)}
                arcs.append(Arc(state, state + 1, None, score, extra=entries[0].extra))
        finals = [Final(len(slots), {"am": 0.0})]
        yield Lattice.of(str(number), len(slots) + 1, 0, arcs, finals=finals)


def parse_slots(line: str, where: str) -> dict[int, list[Arc]]:
    slots: dict[int, list[Arc]] = {}
    for entry in line.split():
        word, slot, posterior = parse_entry(entry, where)
        if slots and slot < max(slots):
            raise UserError(
                f"{where}: {entry[:40]!r} comes after slot {max(slots)}; sort the line by slot"
            )
        state = len(slots) - (slot in slots)
        extra = {"slot": str(slot)} if slot != state else {}
        if word in NULLS:
            word, extra = None, extra if word == NULL else {**extra, "symbol": word}
        arc = Arc(state, state + 1, word, {"am": posterior}, extra=extra)
        slots.setdefault(slot, []).append(arc)
    return slots


def parse_entry(entry: str, where: str) -> tuple[str, int, float]:
    """Parse the word, slot and log-posterior of an entry."""
    word, *rest = entry.rsplit(":", 2)
    if len(rest) != 2 or not word:
        raise UserError(f"{where}: {entry[:40]!r} is not word:slot:posterior; correct it")
    posterior = parse_real(rest[1], where, "a posterior")
    if not 0 <= posterior < math.inf:
        raise UserError(f"{where}: a posterior is {rest[1]}; expected a probability")
    return (
        word,
        parse_number(rest[0], where, "a slot"),
        math.log(posterior) if posterior else -math.inf,
    )


def holds_epsilons(path) -> bool:
    """Return whether some slot of a file has an entry for no word; False for standard input."""
    return path != "-" and any(
        entry.rsplit(":", 2)[0] in NULLS for _, line in read_lines(path) for entry in line.split()
    )


def write(lattices: Iterable[Lattice], path) -> None:
    """Write confusion networks, one a line; UserError for a lattice that is none."""
    write_rows(lattices, path, spell_text)


def spell_text(lattice: Lattice, where: str) -> str:
    scores, final_scores = one_total(lattice, where)
    sources = lattice.source.tolist()
    chained = lattice.target.tolist() == [source + 1 for source in sources] and set(sources) == set(
        range(lattice.states - 1)
    )
    if (
        not chained
        or lattice.start
        or lattice.finals.tolist() != [lattice.states - 1]
        or final_scores.any()
    ):
        raise UserError(
            f"{where}: is no confusion network (slots in a row, one final state); write it as slf"
            " or plf"
        )
    refuse_null(lattice.words, NULL, where)
    none = ("",) * len(sources)
    rows = zip(
        sources,
        lattice.words,
        scores.tolist(),
        lattice.extra.get("slot", none),
        lattice.extra.get("symbol", none),
        strict=True,
    )
    entries = [
        (
            source,
            (symbol or NULL) if word is None else word,
            slot or source,
            spell_probability(score),
        )
        for source, word, score, slot, symbol in rows
    ]
    entries.sort(key=lambda entry: entry[0])
    return " ".join(f"{word}:{slot}:{posterior}" for _, word, slot, posterior in entries)


def spell_probability(score: float) -> str:
    """Return the shortest text whose logarithm is `score`, or the nearest there is."""
    value = math.exp(min(score, 700))
    for digits in (6, 12, 15, 16):
        short = f"{value:.{digits}g}"
        if float(short) and math.log(float(short)) == score:
            return short
    return f"{value:.17g}"
