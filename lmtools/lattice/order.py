"""The order of a lattice's states, which of them lie on a path, and epsilon closures: states that
can be reached without a word.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lmtools.base.errors import UserError
from lmtools.lattice.weights import check_arguments
from lmtools.types import Lattice

Chain = tuple | None  # arcs in a row: None, or (the chain before, the last arc)


def arcs_by_state(states: np.ndarray, count: int) -> list[list[int]]:
    """Return for each of `count` states the arcs, in order, whose end in `states` (A,) it is."""
    arcs: list[list[int]] = [[] for _ in range(count)]
    for arc, state in enumerate(states.tolist()):
        arcs[state].append(arc)
    return arcs


def topological(lattice: Lattice) -> np.ndarray:
    """Return the states (S,), reachable or not, so that every arc leads forward; lowest number
    first.

    States that are numbered so already keep their order. UserError where there is a cycle.
    """
    if (lattice.source < lattice.target).all():
        return np.arange(lattice.states)
    arcs, targets = arcs_by_state(lattice.source, lattice.states), lattice.target.tolist()
    missing = np.bincount(lattice.target, minlength=lattice.states).tolist()
    ready = [state for state, count in enumerate(missing) if not count]
    order = []
    while ready:
        order.append(heapq.heappop(ready))
        for arc in arcs[order[-1]]:
            missing[targets[arc]] -= 1
            if not missing[targets[arc]]:
                heapq.heappush(ready, targets[arc])
    if len(order) < lattice.states:
        state = on_cycle(lattice, missing)
        raise UserError(
            f"{lattice.utt}: cycle through state {state}; cut it with lmtools lattice info --repair"
        )
    return np.array(order, dtype=np.int64)


def on_cycle(lattice: Lattice, missing: list[int]) -> int:
    """Return a state on a cycle; `missing` counts arcs from states that no order reached."""
    before = {
        target: source
        for source, target in zip(lattice.source.tolist(), lattice.target.tolist(), strict=True)
        if missing[source]
    }
    state, seen = next(state for state, count in enumerate(missing) if count), set()
    # each has one before it that was not reached either: backwards it must come round
    while state not in seen:
        seen.add(state)
        state = before[state]
    return state


def rank_states(lattice: Lattice) -> np.ndarray:
    """Return the place of each state (S,) in `topological` order."""
    rank = np.empty(lattice.states, dtype=np.int64)
    rank[topological(lattice)] = np.arange(lattice.states)
    return rank


def go_forward(lattice: Lattice) -> Iterator[tuple[int, int]]:
    """Yield the ends of all arcs, those that enter a state before those that leave it."""
    order = np.argsort(rank_states(lattice)[lattice.source], kind="stable")
    yield from zip(lattice.source[order].tolist(), lattice.target[order].tolist(), strict=True)


def levels(lattice: Lattice) -> np.ndarray:
    """Return the most arcs on a way to each state (S,), -1: unreachable; UserError for a cycle."""
    level = [-1] * lattice.states
    level[lattice.start] = 0
    for source, target in go_forward(lattice):
        if level[source] >= level[target] and level[source] >= 0:
            level[target] = level[source] + 1
    return np.array(level, dtype=np.int64)


def reach_states(start: list[int], arcs: list[list[int]], other: list[int]) -> np.ndarray:
    """Return which states (S,) bool are reached from `start` over `arcs` to `other` (A,)."""
    reached, open_ = np.zeros(len(arcs), dtype=bool), list(start)
    reached[open_] = True
    while open_:
        for arc in arcs[open_.pop()]:
            if not reached[other[arc]]:
                reached[other[arc]] = True
                open_.append(other[arc])
    return reached


def reachable(lattice: Lattice) -> np.ndarray:
    """Return which states (S,) bool the start leads to; cycles are no trouble."""
    return reach_states(
        [lattice.start], arcs_by_state(lattice.source, lattice.states), lattice.target.tolist()
    )


def alive(lattice: Lattice) -> np.ndarray:
    """Return which states (S,) bool lead to a final state; cycles are no trouble."""
    return reach_states(
        lattice.finals.tolist(),
        arcs_by_state(lattice.target, lattice.states),
        lattice.source.tolist(),
    )


def states_on_paths(lattice: Lattice) -> np.ndarray:
    """Return which states (S,) bool lie on a path from start to end; cycles may be."""
    return reachable(lattice) & alive(lattice)


@check_arguments
def trim(lattice: Lattice) -> Lattice:
    """Return the same paths without other states and arcs: topological order, start 0, arcs by
    source.

    UserError where there is a cycle or no path.
    """
    on_path = states_on_paths(lattice)
    if not on_path.any():
        raise no_path(lattice)
    inside = on_path[lattice.source] & on_path[lattice.target]
    lattice = renumber(lattice, on_path, np.flatnonzero(inside))
    lattice = renumber(lattice, topological(lattice), np.arange(len(lattice.words)))
    return lattice.take(np.argsort(lattice.source, kind="stable"), np.arange(len(lattice.finals)))


def renumber(lattice: Lattice, states: np.ndarray, arcs: np.ndarray) -> Lattice:
    """Return the lattice of these states (in new order, or a mask) and the arcs between."""
    kept = np.flatnonzero(states) if states.dtype == bool else states
    number = np.full(lattice.states, -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    return lattice.take(
        arcs,
        np.flatnonzero(number[lattice.finals] >= 0),
        states=len(kept),
        start=int(number[lattice.start]),
        source=number[lattice.source[arcs]],
        target=number[lattice.target[arcs]],
        finals=number[lattice.finals[number[lattice.finals] >= 0]],
        times=None if lattice.times is None else lattice.times[kept],
    )


def no_path(lattice: Lattice) -> UserError:
    """Return the error on a lattice without a path of finite score."""
    return UserError(
        f"{lattice.utt}: no possible path from the start to a final state; replace it with lmtools"
        " lattice info --repair"
    )


def unroll_chain(chain: Chain) -> list[int]:
    """Return the arcs of a chain in order; an element that is a chain gives its own arcs."""
    arcs, open_ = [], [chain]
    while open_:
        item = open_.pop()
        if isinstance(item, tuple):
            open_ += item  # the last one comes out first: backwards
        elif item is not None:
            arcs.append(item)
    return arcs[::-1]


class Closures:
    """For each state those that epsilon arcs lead to by the best way, by weighted `scores` (A,),
    and the arcs with words; impossible arcs are left out.
    """

    def __init__(self, lattice: Lattice, scores: np.ndarray):
        self.rank = rank_states(lattice)
        self.score, self.target = scores.tolist(), lattice.target.tolist()
        self.words_of: list[list[int]] = []
        self.epsilons_of: list[list[int]] = []
        for arcs in arcs_by_state(lattice.source, lattice.states):
            possible = [arc for arc in arcs if self.score[arc] > -np.inf]
            self.words_of.append([arc for arc in possible if lattice.words[arc] is not None])
            self.epsilons_of.append([arc for arc in possible if lattice.words[arc] is None])

    def of(self, state: int) -> list[tuple[int, float, Chain]]:
        """Return (reached state, score, chain of arcs), itself first, in topological order."""
        if not self.epsilons_of[state]:
            return [(state, 0.0, None)]
        reached, best, open_ = [], {state: (0.0, None)}, [(self.rank[state], state)]
        while open_:
            _, here = heapq.heappop(open_)
            score, chain = best[here]
            reached.append((here, score, chain))
            for arc in self.epsilons_of[here]:
                there, value = self.target[arc], score + self.score[arc]
                if there not in best:
                    heapq.heappush(open_, (self.rank[there], there))
                if there not in best or value > best[there][0]:
                    best[there] = value, (chain, arc)
        return reached


@dataclass(frozen=True)
class Stop:
    """An end after epsilons: the score of both, the chain of arcs, the index of the final state."""

    score: float
    chain: Chain
    final: int


class Stops:
    """The best end within the reach of a state; `finals` (F,) are the weighted scores of ending."""

    def __init__(self, lattice: Lattice, finals: np.ndarray):
        ends = enumerate(zip(lattice.finals.tolist(), finals.tolist(), strict=True))
        self.score = {state: (score, final) for final, (state, score) in ends if score > -np.inf}

    def best(self, reach: list[tuple[int, float, Chain]]) -> Stop | None:
        """Return the best end among `reach`, as Closures.of gives it; None if there is none."""
        stops = [
            Stop(score + self.score[state][0], chain, self.score[state][1])
            for state, score, chain in reach
            if state in self.score
        ]
        return max(stops, key=lambda stop: stop.score, default=None)
