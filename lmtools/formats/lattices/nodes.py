"""Lattices with words on nodes (SLF, pocketsphinx) as lattices with words on arcs, and back.

A node becomes a state, a link an arc that carries the word of one of its nodes: of its `source` or
of its `target`, whichever the link's acoustic score belongs to. Where a word is left over, at the
end (source) or at the start (target), one more state takes it. What else a node says (extras
`symbol`, `variant` and `node.*`) goes with its word.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lmtools.formats.lattices.common import arcs_leaving, one_end, plain_end
from lmtools.types import EMPTY, Arc, Final, Lattice

FILLER = re.compile(r"!NULL|!SENT_START|!SENT_END|</?s>|<sil>|\+\+.+\+\+")
START = "start."  # in a header: what a start node says whose word no arc carries


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
    """A lattice with words on nodes: these, wordless links between them, the first and the last,
    the nodes' seconds if known, and the header.
    """

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
    states, header, final = len(nodes), dict(graph.header), Final(end, {"am": 0.0})
    left = nodes[end if side == "source" else start]
    if left.word is not None and side == "source":
        arcs.append(Arc(end, states, left.word, extra=left.extra))
        final, states = Final(states, {"am": 0.0}), states + 1
    elif left.word is not None:
        arcs.append(Arc(states, start, left.word, extra=left.extra))
        start, states = states, states + 1
    elif side == "source":
        final = Final(end, {"am": 0.0}, left.extra)
    else:
        header |= {START + name: value for name, value in left.extra.items()}
    times = None if graph.times is None else [*graph.times, *[np.nan] * (states - len(nodes))]
    return Lattice.of(utt, states, start, arcs, finals=[final], times=times, header=header)


def is_node_extra(name: str) -> bool:
    """Return whether an extra is a node's, not a link's."""
    return name in ("symbol", "variant") or name.startswith("node.")


def label_arcs(lattice: Lattice) -> list[Node]:
    """Return the word and the node's extras of each arc."""
    names = [name for name in lattice.extra if is_node_extra(name)]
    columns = (
        zip(*(lattice.extra[name] for name in names), strict=True)
        if names
        else [()] * len(lattice.words)
    )
    rows = zip(lattice.words, columns, strict=True)
    return [
        Node(word, {name: value for name, value in zip(names, values, strict=True) if value})
        for word, values in rows
    ]


def find_nodes(lattice: Lattice, side: str) -> list[Node] | None:
    """Return the node of each state from which the arcs' words follow; None if none do."""
    end = plain_end(lattice)
    named = {name for name, column in lattice.final_extra.items() if any(column)}
    if end is None or not all(side == "source" and is_node_extra(name) for name in named):
        return None
    if side == "target" and (lattice.target == lattice.start).any():
        return None
    states = lattice.source if side == "source" else lattice.target
    nodes: dict[int, Node] = {}
    for state, label in zip(states.tolist(), label_arcs(lattice), strict=True):
        if nodes.setdefault(state, label) != label:
            return None
    if side == "source":
        nodes[end] = Node(None, {name: lattice.final_extra[name][0] for name in named})
    else:
        starting = {
            name.removeprefix(START): value
            for name, value in lattice.header.items()
            if name.startswith(START)
        }
        nodes[lattice.start] = Node(None, starting)
    return [nodes.get(state, Node()) for state in range(lattice.states)]


def split_states(lattice: Lattice, where: str) -> Lattice:
    """Split states so that all arcs out of a state have the same word, and `find_nodes` finds those
    of "source"; the paths stay the same.

    A state becomes one for each word that leaves it, which multiplies the arcs that enter it; the
    ends become one.
    """
    lattice = one_end(lattice, where)
    end, leaving = int(lattice.finals[0]), arcs_leaving(lattice)
    arc_labels = [(node.word, *sorted(node.extra.items())) for node in label_arcs(lattice)]
    parts: dict[tuple, int] = {(end,): 1}  # state 0 is the new start, 1 the end
    exits = [
        list(dict.fromkeys((state, *arc_labels[arc]) for arc in arcs))
        for state, arcs in enumerate(leaving)
    ]
    exits[end] = [(end,)]
    for part in (part for parts_of_state in exits for part in parts_of_state):
        parts.setdefault(part, len(parts) + 1)
    rows, arcs = [], lattice.arcs()
    for arc, label in zip(arcs, arc_labels, strict=True):
        here = parts[(arc.source, *label)]
        rows += [replace(arc, source=here, target=parts[part]) for part in exits[arc.target]]
    first = [Arc(0, parts[part], None) for part in exits[lattice.start]]
    none = dict.fromkeys(lattice.scores, 0.0)
    times = None
    if lattice.times is not None:
        of = {number: part[0] for part, number in parts.items()}
        times = [
            lattice.times[lattice.start],
            *(lattice.times[of[number]] for number in range(1, len(parts) + 1)),
        ]
    arcs, finals, header = [*first, *rows], [Final(1, none)], lattice.header
    return Lattice.of(
        lattice.utt, len(parts) + 1, 0, arcs, finals=finals, times=times, header=header
    )
