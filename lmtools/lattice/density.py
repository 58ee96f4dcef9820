"""Size of lattices: states, arcs, arcs a word and a second, paths; and the path nearest to a
reference, which the best possible rescoring would reach.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lmtools.lattice.forward import sweep
from lmtools.lattice.order import arcs_by_state, go_forward, levels, no_path, states_on_paths
from lmtools.lattice.paths import best
from lmtools.lattice.weights import check_arguments, list_words
from lmtools.types import Lattice

# in a cost, errors come before the words of the reference that were missed: errors * ERROR + missed
ERROR = 1 << 32
SUBSTITUTION, DELETION, INSERTION = ERROR + 1, ERROR + 1, ERROR
NEVER = np.iinfo(np.int64).max // 4


@dataclass(frozen=True)
class Statistics:
    """The size of a lattice, or of several: `connected` states are on a path; `words` that
    densities are relative to, `counted_arcs` of lattices with them; `paths`: log10.
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
    for source, target in go_forward(lattice):
        ways[target] += ways[source]
    return sum(ways[state] for state in lattice.finals.tolist())


def log10(count: int) -> float:
    """Return the log10 of a count of any size; -inf of 0."""
    return math.log10(count) if count else -math.inf


@dataclass(frozen=True)
class Oracle:
    """The errors of the path nearest to the reference, and the path: its words and arcs."""

    substitutions: int
    deletions: int
    insertions: int
    words: tuple[str, ...]
    arcs: tuple[int, ...]

    @property
    def errors(self) -> int:
        return self.substitutions + self.deletions + self.insertions


@check_arguments
def oracle(lattice: Lattice, ref: Sequence[str]) -> Oracle:
    """Return the path of the fewest errors (Levenshtein) against the words of `ref`, whatever its
    scores.

    Among those of the fewest errors one with the most correct words; further ties depend on the
    lattice alone. Takes memory of 8 bytes x states x (reference words + 1). UserError where there
    is no path or a cycle.
    """
    ref = list_words(ref, "ref")
    numbers = {word: number for number, word in enumerate(dict.fromkeys(ref))}
    reference = np.array([numbers[word] for word in ref], dtype=np.int64)
    words = np.array(
        [-2 if word is None else numbers.get(word, -1) for word in lattice.words], dtype=np.int64
    )
    cost = costs(lattice, words, reference)
    ends = cost[lattice.finals, len(ref)]
    if not len(ends) or ends.min() >= NEVER:
        raise no_path(lattice)
    counts, arcs = trace_path(
        lattice, words, reference, cost, state=int(lattice.finals[ends.argmin()])
    )
    return Oracle(
        *counts,
        tuple(lattice.words[arc] for arc in arcs if lattice.words[arc] is not None),
        tuple(arcs),
    )


def costs(lattice: Lattice, words: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the least cost (S, R + 1) from the start to each state against the first r words, of
    numbers `reference` (R,); `words` (A,): -1 others, -2 epsilon.
    """
    deleted = DELETION * np.arange(len(reference) + 1)
    cost = np.full((lattice.states, len(reference) + 1), NEVER)
    cost[lattice.start] = deleted
    for rows, firsts, states in sweep(lattice.target, levels(lattice), lowest=1):
        before, word = cost[lattice.source[rows]], words[rows, None]  # (rows, R + 1), (rows, 1)
        after = before + INSERTION * (word != -2)
        paired = before[:, :-1] + SUBSTITUTION * (word != reference)
        np.minimum(after[:, 1:], np.where(word == -2, NEVER, paired), out=after[:, 1:])
        best = np.minimum.reduceat(after, firsts)
        best = np.minimum.accumulate(best - deleted, axis=1) + deleted
        cost[states] = np.minimum(best, NEVER)
    return cost


def trace_path(
    lattice: Lattice, words: np.ndarray, reference: np.ndarray, cost: np.ndarray, *, state: int
) -> tuple[list[int], list[int]]:
    """Return [substitutions, deletions, insertions] of a cheapest way to `state`, and its arcs."""
    entering, sources = arcs_by_state(lattice.target, lattice.states), lattice.source.tolist()
    place, counts, arcs = len(reference), [0, 0, 0], []
    while state != lattice.start or place:
        here, tried = cost[state, place], [(None, 1, DELETION, state)] if place else []
        tried += [
            (arc, *step, sources[arc])
            for arc in entering[state]
            for step in steps(int(words[arc]), reference, place)
        ]
        arc, back, price, state = next(
            step for step in tried if cost[step[3], place - step[1]] + step[2] == here
        )
        if price:
            counts[1 if arc is None else 0 if back else 2] += 1
        if arc is not None:
            arcs.append(arc)
        place -= back
    return counts, arcs[::-1]


def steps(word: int, reference: np.ndarray, place: int) -> list[tuple[int, int]]:
    """Return how an arc's word may align at a place of the reference: (words taken, price)."""
    if word == -2:
        return [(0, 0)]
    paired = [(1, SUBSTITUTION * int(word != reference[place - 1]))] if place else []
    return [*paired, (0, INSERTION)]
