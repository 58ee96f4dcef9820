"""Kaldi's lattices, compact and plain, text and binary, in archives, script files, pipes and decode
directories (`lat.N.gz`).

Weights are graph and acoustic costs; negated they become the scores `graph` (LM and the rest of the
graph) and `am`, unscaled. A weight of One may be left out, costs may be `Infinity` (both: the state
is not final). Binary weights are float32. Transition ids are the extra `ali` (`3_3_4`) of arcs and
finals; their count times `frame` seconds gives the states' times where all paths agree. Words are
ids of a words.txt: the option words=FILE, or else words.txt beside the lattices, in graph there or
in ../graph*; 0 is no word. Plain lattices have words as output labels, and a transition id, the
`ali` of an arc, as input label.

Compact lattices are written, as text. A separate `lm` score goes into the graph's; of lattices with
other scores the total is written, as acoustic cost. A directory gets lat.1.gz and num_jobs.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from lmtools.base.atomic import atomic_text, is_stream
from lmtools.base.errors import UserError
from lmtools.formats import kaldi_tables
from lmtools.formats.checks import list_names
from lmtools.formats.lattices import openfst
from lmtools.formats.lattices.common import (
    check_states,
    negate,
    parse_number,
    parse_real,
    spell_number,
)
from lmtools.formats.lattices.openfst import Automaton, Weight
from lmtools.formats.registry import list_numbered, parse_specifier
from lmtools.types import TOTAL, Arc, Final, Lattice

SUMMARY = "Kaldi's lattices, compact or plain, text or binary: a table or a decode directory"
OPTIONS = {
    "words": (
        "words.txt (lines `word id`); read: default words.txt beside the lattices, in graph or"
        " ../graph*"
    ),
    "frame": "seconds that a transition id lasts (default 0.01)",
}
JOB = re.compile(r"lat\.(\d+)(\.gz)?", re.ASCII)
IDS = re.compile(r"(\d{1,9}(_\d{1,9})*)?", re.ASCII)
SCORES = {"graph", "lm", "am"}
ONE = (0.0, 0.0, "")
MERGE = ("graph", ("am",))  # the format has no other scores


def recognises(path: Path, first: str) -> bool:
    """Return whether `path` is a decode directory, a binary table, or text with a key line."""
    if path.is_dir():
        return bool(list_jobs(path))
    return (
        re.match("\\S+ \ufffd{3}~", first) is not None
        or re.fullmatch(r"[^\s=(]+ ", first) is not None
    )


def list_jobs(path: Path) -> list[Path]:
    return [child for _, child in list_numbered(path, JOB)]


def read(path, words: str | None = None, frame: str = "0.01") -> Iterator[Lattice]:
    """Read the lattices of a table (`ark:F`, `scp:F`, a file) or decode directory, one by one."""
    seconds = parse_real(frame, str(path), "frame")
    symbols = kaldi_tables.read_symbols(words or table_of(path)) | {0: None}
    for place in list_tables(path):
        for entry in kaldi_tables.read_entries(place):
            binary = entry.stream.peek(4) == kaldi_tables.OPENFST
            automaton = (
                openfst.read_binary(entry.stream, entry.where) if binary else parse_entry(entry)
            )
            yield build_lattice(entry.key, automaton, symbols, frame=seconds, where=entry.where)


def list_tables(path) -> list:
    """Return the tables of `path`: itself, or all archives of a decode directory."""
    if parse_specifier(path) or not Path(path).is_dir():
        return [path]
    archives, stated = list_jobs(Path(path)), Path(path, "num_jobs")
    if not archives:
        raise UserError(f"{path}: no lat.1.gz in it; give a decode directory of Kaldi")
    if stated.is_file() and parse_number(
        stated.read_text(errors="replace").strip(), str(stated), "the number of jobs"
    ) != len(archives):
        raise UserError(
            f"{path}: num_jobs is not the number of its lat.N, {len(archives)}; let all jobs finish"
        )
    return archives


def table_of(path) -> Path:
    """Return the words.txt that belongs to the lattices in `path`."""
    spec = parse_specifier(path)
    place = spec.place if spec else path
    home = Path(place) if Path(place).is_dir() else Path(place).parent
    plain = place != "-" and not (spec and place.endswith("|"))
    places = [home, home / "graph", home.parent / "graph", *sorted(home.parent.glob("graph?*"))]
    tables = [place / "words.txt" for place in places if plain and (place / "words.txt").is_file()]
    named = [file for file in tables if file.parent.name.removeprefix("graph") in home.name]
    if len({file.read_bytes() for file in tables}) == 1 or named:
        return [*named, *tables][0]
    if tables:
        raise UserError(f"{path}: {tables[0]} and {tables[1]} differ; name one: kaldi:words=FILE")
    raise UserError(
        f"{path}: no words.txt beside it; name it as kaldi:words=FILE (it is in the decoding"
        " graph's directory)"
    )


def parse_entry(entry: kaldi_tables.TableEntry) -> Automaton:
    arcs, finals, compact, where, start = [], [], None, entry.where, None
    for where, line in kaldi_tables.read_block(entry):
        fields = line.split()
        weighted = "," in fields[-1] and len(fields) > 1
        kind = fields[-1].count(",") == 2 if weighted else None
        costs = parse_weight(fields[-1], where) if weighted else ONE
        states = [
            parse_number(text, where, "a state") for text in fields[: 2 if len(fields) > 2 else 1]
        ]
        start = states[0] if start is None else start
        labels = [
            parse_number(text, where, "a label")
            for text in (fields[2:-1] if weighted else fields[2:])
        ]
        if len(fields) == (2 if weighted else 1):
            finals.append((states[0], costs))
        elif len(labels) in (1, 2) and kind in (None, len(labels) == 1):
            kind = len(labels) == 1
            arcs.append((*states, labels[0], labels[-1], costs))
        else:
            raise UserError(
                f"{where}: {line[:60]!a}; expected `from to word graph,acoustic,ids`, or, plain,"
                " `from to id word costs`"
            )
        if kind is not None and compact not in (None, kind):
            raise UserError(f"{where}: compact and plain lattices mixed; write the archive again")
        compact = kind if compact is None else compact
    if not arcs and not finals:
        return Automaton(True, -1, 0)
    states = 1 + max([*(max(arc[:2]) for arc in arcs), *(state for state, _ in finals)])
    check_states(states, len(arcs) + len(finals), where)
    # else a state without arcs is listed
    ends = [(state, costs) for state, costs in finals if costs[:2] != (math.inf, math.inf)]
    return Automaton(compact is not False, start, states, arcs=arcs, finals=ends)


def parse_weight(text: str, where: str) -> Weight:
    """Return the weight that `graph,acoustic,ids` or `graph,acoustic` spells."""
    graph, acoustic, *ids = text.split(",")
    if len(ids) > 1 or not IDS.fullmatch("".join(ids)):
        raise UserError(
            f"{where}: the weight {text[:40]!r}; expected graph,acoustic,ids with ids like 3_3_4"
        )
    return (
        parse_real(graph, where, "a graph cost"),
        parse_real(acoustic, where, "an acoustic cost"),
        "".join(ids),
    )


def build_lattice(
    utt: str, automaton: Automaton, symbols: Mapping[int, str | None], frame: float, where: str
) -> Lattice:
    arcs = []
    for source, target, label, output, costs in automaton.arcs:
        if output not in symbols:
            raise UserError(
                f"{where}: word id {output} is not in words.txt; give the one of the decoding graph"
                " as words="
            )
        ali = costs[2] if automaton.compact else str(label or "")
        arcs.append(
            Arc(
                source,
                target,
                symbols[output],
                name_scores(costs),
                extra={"ali": ali} if ali else {},
            )
        )
    finals = [
        Final(state, name_scores(costs), {"ali": costs[2]} if costs[2] else {})
        for state, costs in automaton.finals
    ]
    if not automaton.states:  # Kaldi writes such for an utterance that failed
        none = {name: np.zeros(0) for name in name_scores(ONE)}
        empty = Lattice.of(utt, 1, 0, [], finals=[])
        return replace(empty, scores=none, final_scores=none)
    whole = Lattice.of(utt, automaton.states, automaton.start, arcs, finals=finals)
    return replace(whole, times=times_of(whole, frame))


def name_scores(costs: Weight) -> dict[str, float]:
    return {"graph": negate(costs[0]), "am": negate(costs[1])}


def times_of(lattice: Lattice, frame: float) -> np.ndarray | None:
    """Return seconds of states by transition ids; None without, or where two ways differ."""
    if "ali" not in lattice.extra or not any(lattice.extra["ali"]):
        return None
    leaving: list[list[tuple[int, int]]] = [[] for _ in range(lattice.states)]
    for source, target, ali in zip(
        lattice.source.tolist(), lattice.target.tolist(), lattice.extra["ali"], strict=True
    ):
        leaving[source].append((target, ali.count("_") + 1 if ali else 0))
    at, waiting = {lattice.start: 0}, [lattice.start]
    while waiting:
        state = waiting.pop()
        for target, count in leaving[state]:
            if target not in at:
                at[target] = at[state] + count
                waiting.append(target)
            elif at[target] != at[state] + count:
                return None
    return np.array([at.get(state, math.nan) * frame for state in range(lattice.states)])


def write(lattices: Iterable[Lattice], path, words: str | None = None) -> None:
    """Write lattices to a table, or into a directory as lat.1.gz with num_jobs.

    UserError for words that are not in words.txt, and for scores beside graph, lm and am without a
    total.
    """
    folder = not parse_specifier(path) and (
        Path(path).is_dir() or (not is_stream(path) and not Path(path).suffix)
    )
    symbols = kaldi_tables.read_symbols(words or table_of(path))
    ids = {word: number for number, word in symbols.items() if number}
    if folder:
        Path(path).mkdir(parents=True, exist_ok=True)
    with kaldi_tables.Writer(Path(path, "lat.1.gz") if folder else path) as table:
        for item in lattices:
            table.write(item.utt, spell_text(item, ids, f"{path}: utterance {item.utt!r}"))
    if folder:
        with atomic_text(Path(path, "num_jobs"), follow=False) as out:
            out.write("1\n")


def collect_weights(
    scores: Mapping[str, np.ndarray], ali: tuple[str, ...] | None, count: int, where: str
) -> list[Weight]:
    """Return the weights of arcs or finals: graph and LM cost, acoustic cost, ids."""
    zeros = np.zeros(count)
    if TOTAL in scores:
        graph, acoustic = zeros, scores[TOTAL]
    elif other := scores.keys() - SCORES:
        raise UserError(
            f"{where}: Kaldi has no place for the scores {list_names(other)}; rescore it into one"
            " total, or write it as slf"
        )
    else:
        graph = scores.get("graph", zeros) + scores.get("lm", zeros)
        acoustic = scores.get("am", zeros)
    ali = ali or ("",) * count
    if wrong := [ids for ids in ali if not IDS.fullmatch(ids)]:
        raise UserError(
            f"{where}: the extra `ali` is {wrong[0][:40]!r}; expected transition ids like 3_3_4"
        )
    return list(zip((0.0 - graph).tolist(), (0.0 - acoustic).tolist(), ali, strict=True))


def spell_text(lattice: Lattice, ids: Mapping[str, int], where: str) -> str:
    """Return the text of an entry: a line end after the key, the states' lines, an empty line."""
    if missing := [word for word in lattice.words if word is not None and word not in ids]:
        raise UserError(
            f"{where}: word {missing[0]!r} is not in words.txt; add it, or give the right one as"
            " words="
        )
    costs = collect_weights(lattice.scores, lattice.extra.get("ali"), len(lattice.words), where)
    ends = collect_weights(
        lattice.final_scores, lattice.final_extra.get("ali"), len(lattice.finals), where
    )
    states = lattice.states if lattice.words or len(lattice.finals) else 0
    lines: dict[int, list[str]] = {lattice.start: []} if states else {}
    rows = zip(lattice.source.tolist(), lattice.target.tolist(), lattice.words, costs, strict=True)
    for source, target, word, cost in rows:
        number = 0 if word is None else ids[word]
        lines.setdefault(source, []).append(spell_row((source, target, number), cost))
    for state, cost in zip(lattice.finals.tolist(), ends, strict=True):
        lines.setdefault(state, []).append(spell_row((state,), cost))
    for state in range(states):
        lines.setdefault(state, [])
        lines[state] = lines[state] or [spell_row((state,), (math.inf, math.inf, ""))]
    return "\n".join(["", *(line for rows in lines.values() for line in rows), "", ""])


def spell_row(numbers: tuple[int, ...], costs: Weight) -> str:
    """Return a line; a weight of One is left out."""
    spelling = [spell_number(cost).replace("inf", "Infinity") for cost in costs[:2]]
    fields = [] if costs == ONE else [",".join([*spelling, costs[2]])]
    return "\t".join([*map(str, numbers), *fields])
