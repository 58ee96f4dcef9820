"""OpenFst's binary vector automata with Kaldi's lattice weights, as after a key in archives.

Header: int32 2125659606, the texts `vector` and `compactlattice44` or `lattice4` (each behind its
int32 length), int32 version, int32 flags, uint64 properties, int64 start, states, arcs. A state:
its final weight (infinite: not final), int64 number of arcs, arcs of int32 input label, int32
output label, weight, int32 next state. A weight: float32 graph and acoustic cost, and in compact
lattices an int32 count of int32 transition ids. All little-endian.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from lmtools.base.errors import UserError
from lmtools.formats.kaldi_io import Stream
from lmtools.formats.kaldi_tables import OPENFST

COMPACT, PLAIN = b"compactlattice44", b"lattice4"
SYMBOLS = 3  # the flags that say that symbol tables follow the header
PROPERTIES = 0x3  # expanded, mutable: no more is promised
MOST = 1 << 31
HEAD, COSTS, INT, LONG, LABELS = (
    struct.Struct(form) for form in ("<iiQqqq", "<ff", "<i", "<q", "<ii")
)
Weight = tuple[float, float, str]  # graph cost, acoustic cost, transition ids joined by _


@dataclass(frozen=True)
class Automaton:
    """The rows of a lattice as Kaldi has them: arcs (source, target, input label, output label,
    weight), finals (state, weight).
    """

    compact: bool
    start: int
    states: int
    arcs: Sequence[tuple[int, int, int, int, Weight]] = ()
    finals: Sequence[tuple[int, Weight]] = ()


def read(stream: Stream, where: str) -> Automaton:
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
    """Return the next weight."""
    graph, acoustic = COSTS.unpack(stream.read(8))
    if not compact:
        return graph, acoustic, ""
    count = INT.unpack(stream.read(4))[0]
    ids = struct.unpack(f"<{count}i", stream.read(4 * count)) if 0 < count < MOST // 4 else ()
    return graph, acoustic, "_".join(map(str, ids))


def pack_automaton(automaton: Automaton) -> bytes:
    """Return the bytes that `read` reads back, costs rounded to float32."""
    leaving: list[list] = [[] for _ in range(automaton.states)]
    for arc in automaton.arcs:
        leaving[arc[0]].append(arc)
    final = dict(automaton.finals)
    infinite = (float("inf"), float("inf"), "")
    parts = [OPENFST]
    for kind in (b"vector", COMPACT if automaton.compact else PLAIN):
        parts += [INT.pack(len(kind)), kind]
    sizes = automaton.start, automaton.states, len(automaton.arcs)
    parts.append(HEAD.pack(2, 0, PROPERTIES, *sizes))
    for state, arcs in enumerate(leaving):
        parts += [pack_weight(final.get(state, infinite), automaton.compact), LONG.pack(len(arcs))]
        for _, target, *labels, costs in arcs:
            parts += [LABELS.pack(*labels), pack_weight(costs, automaton.compact), INT.pack(target)]
    return b"".join(parts)


def pack_weight(costs: Weight, compact: bool) -> bytes:
    """Return the bytes of a weight; OverflowError if float32 cannot hold it."""
    pair = COSTS.pack(*costs[:2])
    if not compact:
        return pair
    ids = [int(number) for number in costs[2].split("_") if number]
    return pair + struct.pack(f"<{len(ids) + 1}i", len(ids), *ids)
