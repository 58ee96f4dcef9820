"""Lattices with words on nodes (SLF, pocketsphinx) as lattices with words on arcs.

A node becomes a state, a link an arc that carries the word of one of its nodes: of its `source` or
of its `target`, whichever the link's acoustic score belongs to. Where a word is left over, at the
end (source) or at the start (target), one more state takes it. What else a node says (extras
`symbol`, `variant` and `node.*`) goes with its word.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lmtools.types import EMPTY, Arc, Final, Lattice

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
