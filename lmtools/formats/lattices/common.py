"""Parts that lattice formats share: numbers and symbols as their writers spell them, files or
directories of them, one score a lattice, words on nodes.

A node becomes a state, a link an arc that carries the word of one of its nodes: of its `source` or
of its `target`, whichever the link's acoustic score belongs to. Where a word is left over, at the
end (source) or at the start (target), one more state takes it. What else a node says (extras
`symbol`, `variant` and `node.*`) goes with its word.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from lmtools.base.atomic import atomic_directory, atomic_text, is_stream
from lmtools.base.errors import UserError
from lmtools.base.files import OPENERS, read_lines
from lmtools.formats.checks import encodable, file_name, list_names
from lmtools.formats.registry import list_children
from lmtools.types import EMPTY, TOTAL, Arc, Final, Lattice

# float() alone would also take '1_000' and digits of other scripts.
REAL = re.compile(r"[-+]?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE)
Spell = Callable[[Lattice, str], str]  # the text of a lattice, by the place for messages
WHOLE = re.compile(r"\d{1,9}", re.ASCII)
LARGEST = 1e100  # beyond which sums along paths, and their squares, might overflow


def parse_real(text: str, where: str, what: str) -> float:
    """Parse the number in `text`, infinity and NaN included, infinity beyond LARGEST."""
    if not REAL.fullmatch(text):
        raise UserError(f"{where}: {what} is {text[:40]!r}; expected a number")
    value = float(text)
    return math.copysign(math.inf, value) if abs(value) > LARGEST else value


def parse_number(text: str, where: str, what: str) -> int:
    if not WHOLE.fullmatch(text):
        raise UserError(f"{where}: {what} is {text[:40]!r}; expected a whole number from 0")
    return int(text)


def spell_number(value: float) -> str:
    """Spell a number as the shortest text that reads back the same; without `.0`."""
    return repr(float(value)).removesuffix(".0")


def negate(value: float) -> float:
    """Return the cost of a score and the other way round, without negative zeros."""
    return 0.0 - value


def check_states(states: int, rows: int, where: str) -> int:
    """Return `states` if `rows` arcs and finals can make use of so many; else UserError."""
    if states > 4 * rows + 1000:
        raise UserError(f"{where}: {states} states for {rows} arcs; number the states without gaps")
    return states


def one_total(lattice: Lattice, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the one score of a lattice: total, else `am`, else 0; UserError for others."""
    name = TOTAL if TOTAL in lattice.scores else "am"
    if name != TOTAL and lattice.scores.keys() - {"am"}:
        names = list_names(lattice.scores)
        raise UserError(
            f"{where}: has the scores {names}, and this format holds one; rescore it into one"
            " total, or write it as slf"
        )
    none = np.zeros(len(lattice.words)), np.zeros(len(lattice.finals))
    return lattice.scores.get(name, none[0]), lattice.final_scores.get(name, none[1])


def refuse_null(values: Iterable[str | None], null: str, where: str) -> None:
    """Raise UserError if a word would be read back as the format's `null`."""
    if null in values:
        raise UserError(f"{where}: the word {null!r} stands for no word in this format; rename it")


def stem(path: Path, suffixes: tuple[str, ...]) -> str | None:
    """Return the utterance id that a file's name means; None without the suffix."""
    name = path.name.removesuffix(path.suffix) if path.suffix in OPENERS else path.name
    return next(
        (
            name.removesuffix(suffix)
            for suffix in suffixes
            if name.endswith(suffix) and name != suffix
        ),
        None,
    )


def files(path, suffixes: tuple[str, ...]) -> list[tuple[str, Path | str]]:
    """Return (utterance id, file) of `path`, or of a directory's files with `suffixes`."""
    if not Path(path).is_dir():
        path = path if path == "-" else Path(path)
        return [("-" if path == "-" else stem(path, suffixes) or path.name.split(".")[0], path)]
    inside = list_children(path)
    pairs = [(utt, child) for child in inside if (utt := stem(child, suffixes))]
    if inside and not pairs:
        raise UserError(
            f"{path}: holds no file {' or '.join('*' + suffix for suffix in suffixes)}; give the"
            " directory of lattices"
        )
    return pairs


def opening(path: Path, suffixes: tuple[str, ...], first: str) -> str:
    """Return the first line of `path`, or of the first lattice in it; '' if there is none."""
    if not path.is_dir():
        return first
    child = next(
        (child for child in list_children(path) if stem(child, suffixes) and child.is_file()), None
    )
    try:
        return "" if child is None else next(read_lines(child), (1, ""))[1]
    except UserError:
        return ""


def write_files(
    lattices: Iterable[Lattice], path, suffix: str, spell: Spell, many: bool = False
) -> None:
    """Write one lattice to the file `path` (its name has `suffix`), or any number as `UTT` + suffix
    into a directory, which appears at once; on a stream several follow each other if `many`.
    """
    if not is_stream(path) and not stem(Path(path), (suffix,)):
        write_directory(lattices, Path(path), suffix, spell)
        return
    with atomic_text(path) as out:
        for count, lattice in enumerate(lattices):
            if count and not (many and is_stream(path)):
                raise UserError(
                    f"{path}: holds one lattice, and there are more; give the name of a directory,"
                    f" without {suffix}"
                )
            out.write(spell_checked(lattice, path, spell))
            out.flush()


def write_rows(lattices: Iterable[Lattice], path, spell: Spell) -> None:
    with atomic_text(path) as out:
        for lattice in lattices:
            out.write(spell_checked(lattice, path, spell) + "\n")
            out.flush()


def spell_checked(lattice: Lattice, path, spell: Spell) -> str:
    """Return the text of a lattice on its way into `path`; UserError for what UTF-8 cannot hold."""
    where = f"{path}: utterance {lattice.utt!r}"
    return encodable(spell(lattice, where), where)


def write_directory(lattices: Iterable[Lattice], path: Path, suffix: str, spell: Spell) -> None:
    """Write the files of lattices into the directory `path`."""
    inside = [child.name for child in path.iterdir()] if path.is_dir() else []
    if other := [name for name in inside if not stem(Path(name), (suffix,))]:
        raise UserError(
            f"{path}: holds {other[0]!r}, which is no {suffix} file; give a new directory"
        )
    with atomic_directory(path, inside[0] if inside else f"*{suffix}") as folder:
        for lattice in lattices:
            file = folder / f"{file_name(lattice.utt, str(path))}{suffix}"
            if file.exists():
                raise UserError(
                    f"{path}: utterance {lattice.utt!r} occurs twice; rename one of them"
                )
            with atomic_text(file) as out:
                out.write(spell_checked(lattice, path, spell))


def plain_end(lattice: Lattice) -> int | None:
    """Return the only final state if it costs nothing and no arc leaves it; else None."""
    if len(lattice.finals) != 1 or any(column[0] for column in lattice.final_scores.values()):
        return None
    return None if (lattice.source == lattice.finals[0]).any() else int(lattice.finals[0])


def one_end(lattice: Lattice, where: str) -> Lattice:
    """Return `lattice` with one end, by wordless arcs where needed; UserError without finals."""
    if plain_end(lattice) is not None:
        return lattice
    if not len(lattice.finals):
        raise UserError(f"{where}: has no final state; run `lmtools lattice info`")
    end, count = lattice.states, len(lattice.finals)
    scores, extra = lattice.final_scores, lattice.final_extra
    return replace(
        lattice,
        states=end + 1,
        source=np.append(lattice.source, lattice.finals),
        target=np.append(lattice.target, np.full(count, end)),
        words=(*lattice.words, *[None] * count),
        scores={name: np.append(row, scores[name]) for name, row in lattice.scores.items()},
        finals=np.array([end]),
        final_scores={name: np.zeros(1) for name in lattice.scores},
        times=None if lattice.times is None else np.append(lattice.times, math.nan),
        extra={name: (*row, *extra[name]) for name, row in lattice.extra.items()},
        final_extra=dict.fromkeys(extra, ("",)),
    )


FILLER = re.compile(r"!NULL|!SENT_START|!SENT_END|</?s>|<sil>|\+\+.+\+\+")


@dataclass(frozen=True)
class Node:
    """A word (None: silence, noise, ends of sentences) with its extras."""

    word: str | None = None
    extra: Mapping[str, str] = field(default_factory=lambda: EMPTY)


def node_of_symbol(symbol: str, null: str, filler: re.Pattern = FILLER) -> Node:
    """Return the node of a symbol; keep a filler other than the format's `null` as an extra."""
    if not filler.fullmatch(symbol):
        return Node(symbol)
    return Node(None, {} if symbol == null else {"symbol": symbol})


@dataclass(frozen=True)
class NodeGraph:
    """A lattice with words on nodes, wordless links, first, last, seconds, header."""

    nodes: Sequence[Node]
    links: Sequence[Arc]
    start: int
    end: int
    times: Sequence[float] | None = None
    header: Mapping[str, str] = field(default_factory=lambda: EMPTY)


def build_lattice(utt: str, graph: NodeGraph, side: str) -> Lattice:
    """Build the lattice of a graph, words from the nodes at `side`."""
    nodes, start, end = graph.nodes, graph.start, graph.end
    arcs = []
    for link in graph.links:
        node = nodes[link.source if side == "source" else link.target]
        arcs.append(replace(link, word=node.word, extra={**node.extra, **link.extra}))
    states, final = len(nodes), Final(end, {"am": 0.0})
    left = nodes[end if side == "source" else start]
    if left.word is not None and side == "source":
        arcs.append(Arc(end, states, left.word, extra=left.extra))
        final, states = Final(states, {"am": 0.0}), states + 1
    elif left.word is not None:
        arcs.append(Arc(states, start, left.word, extra=left.extra))
        start, states = states, states + 1
    times = None if graph.times is None else [*graph.times, *[np.nan] * (states - len(nodes))]
    return Lattice.of(utt, states, start, arcs, finals=[final], times=times, header=graph.header)
