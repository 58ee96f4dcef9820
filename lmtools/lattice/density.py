"""Size of lattices: states, arcs, arcs a word and a second, number of paths."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lmtools.lattice.arguments import check_arguments, list_words
from lmtools.lattice.order import states_on_paths, topological
from lmtools.lattice.paths import best
from lmtools.types import Lattice


@dataclass(frozen=True)
class Statistics:
    """The size of one lattice, or the sum over several (`lattices` of them).

    `connected` are the states on a path; `word_arcs` the arcs that have a word; `vocabulary` the
    distinct words; `seconds` the duration and `timed_arcs` the arcs of the lattices that have one;
    `words` the length that densities are relative to (of the reference or the best path) and
    `counted_arcs` the arcs of the lattices that have one; `paths` is the log10 of the number of
    paths, -inf for none, summed over lattices.
    """

    lattices: int
    states: int
    connected: int
    arcs: int
    word_arcs: int
    finals: int
    vocabulary: frozenset[str]
    seconds: float
    timed_arcs: int
    words: int
    counted_arcs: int
    paths: float

    @property
    def arcs_a_second(self) -> float | None:
        """Return arcs a second of speech; None where no times are known."""
        return self.timed_arcs / self.seconds if self.seconds > 0 else None

    @property
    def arcs_a_word(self) -> float | None:
        """Return arcs with a word for each word of reference or best path, None for no word."""
        return self.counted_arcs / self.words if self.words else None


@check_arguments
def statistics(
    lattice: Lattice, weights: Mapping[str, float] | None = None, ref: Sequence[str] | None = None
) -> Statistics:
    """Return the size of a lattice; densities are per word of `ref`, or of the best path under
    `weights`.

    UserError where there is a cycle, or no possible path for `weights`.
    """
    words: Sequence[str] = ()
    if ref is not None:
        words = list_words(ref, "ref")
    elif weights is not None:
        words = best(lattice, weights).words
    spoken = [word for word in lattice.words if word is not None]
    seconds = duration(lattice)
    return Statistics(
        lattices=1,
        states=lattice.states,
        connected=int(states_on_paths(lattice).sum()),
        arcs=len(lattice.words),
        word_arcs=len(spoken),
        finals=len(lattice.finals),
        vocabulary=frozenset(spoken),
        seconds=seconds,
        timed_arcs=len(lattice.words) if seconds > 0 else 0,
        words=len(words),
        counted_arcs=len(spoken) if words else 0,
        paths=log10(paths(lattice)),
    )


def add_statistics(parts: Iterable[Statistics]) -> Statistics:
    """Return the statistics of a set of lattices: sums, and the union of the words."""
    parts = list(parts)
    added = {
        name: sum(getattr(part, name) for part in parts)
        for name in Statistics.__dataclass_fields__
        if name != "vocabulary"
    }
    return Statistics(vocabulary=frozenset().union(*(part.vocabulary for part in parts)), **added)


def duration(lattice: Lattice) -> float:
    """Return the seconds from the first to the last known time of states on paths; 0 for none."""
    times = np.array([]) if lattice.times is None else lattice.times[states_on_paths(lattice)]
    times = times[np.isfinite(times)]
    return float(times.max() - times.min()) if len(times) else 0.0


def paths(lattice: Lattice) -> int:
    """Return the exact number of paths, impossible ones included; UserError for a cycle."""
    ways = [0] * lattice.states
    ways[lattice.start] = 1
    rank = np.empty(lattice.states, dtype=np.int64)
    rank[topological(lattice)] = np.arange(lattice.states)
    order = np.argsort(rank[lattice.source], kind="stable")
    for source, target in zip(
        lattice.source[order].tolist(), lattice.target[order].tolist(), strict=True
    ):
        ways[target] += ways[source]
    return sum(ways[state] for state in lattice.finals.tolist())


def log10(count: int) -> float:
    """Return the log10 of a count of any size; -inf of 0."""
    return math.log10(count) if count else -math.inf
