"""The order of a lattice's states, and which of them lie on a path."""

import heapq

import numpy as np

from lmtools.base.errors import UserError
from lmtools.lattice.arguments import check_arguments
from lmtools.types import Lattice


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


def levels(lattice: Lattice) -> np.ndarray:
    """Return the most arcs on a way to each state (S,), -1: unreachable; UserError for a cycle."""
    rank = np.empty(lattice.states, dtype=np.int64)
    rank[topological(lattice)] = np.arange(lattice.states)
    forward = np.argsort(rank[lattice.source], kind="stable")
    level = [-1] * lattice.states
    level[lattice.start] = 0
    for source, target in zip(
        lattice.source[forward].tolist(), lattice.target[forward].tolist(), strict=True
    ):
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
