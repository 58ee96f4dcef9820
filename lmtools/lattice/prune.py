"""Smaller lattices: the arcs of the best paths, by beam or by budget."""

from collections.abc import Iterator, Mapping

import numpy as np

from lmtools.lattice.arguments import check_arguments
from lmtools.lattice.forward import through
from lmtools.lattice.order import arcs_by_state, trim
from lmtools.types import Lattice


@check_arguments
def prune(
    lattice: Lattice,
    weights: Mapping[str, float],
    beam: float | None = None,
    arcs: int | None = None,
    density: float | None = None,
) -> Lattice:
    """Return the lattice of the best paths, trimmed; the best one stays. UserError where none is
    possible.

    `beam`: an arc or final state stays whose best path is at most so much worse than the best of
    all. `arcs`: so many arcs at most, or as many as the best path has; they come path by path, the
    best first, until the next path would be too much. `density` is the same in arcs a word of the
    best path. What is not given does not limit; arcs and ends of no possible path always go.
    """
    through_arcs, through_finals, best = through(lattice, weights)
    value = np.concatenate([through_arcs, through_finals])
    floor = -np.inf if beam is None else best - beam - rounding(best)
    keep = (value >= floor) & (value > -np.inf)
    if arcs is not None or density is not None:
        keep &= affordable(lattice, value, arcs, density)
    size = len(lattice.words)
    return trim(lattice.take(np.flatnonzero(keep[:size]), np.flatnonzero(keep[size:])))


def rounding(score: float) -> float:
    """Return how far equal scores of this size may differ, added up in another order."""
    return 1e-12 * (1 + abs(score))


def affordable(
    lattice: Lattice, value: np.ndarray, arcs: int | None, density: float | None
) -> np.ndarray:
    """Return which rows (A + F,), arcs, then finals, fit the budget by the best path through each.

    The end is a state beyond all, to which each final state has a row: so a path is rows from the
    start to there.
    """
    size, end = len(lattice.words), lattice.states
    sources = np.append(lattice.source, lattice.finals)
    targets = np.append(lattice.target, np.full(len(lattice.finals), end))
    before = Ways(sources, best_rows(targets, value, end + 1), lattice.start)
    after = Ways(targets, best_rows(sources, value, end + 1), end)
    keep = np.zeros(len(value), dtype=bool)
    budget, spent = np.inf if arcs is None else arcs, 0
    for row in np.argsort(-value, kind="stable").tolist():
        if value[row] == -np.inf:
            break
        if keep[row]:
            continue
        path = [row, *before.follow(sources[row]), *after.follow(targets[row])]
        cost = sum(row < size for row in path)
        if not spent and density is not None:  # this is the best path
            words = sum(row < size and lattice.words[row] is not None for row in path)
            budget = min(budget, density * max(1, words))
        if keep.any() and spent + cost > budget:
            break
        spent += cost
        keep[path] = True
        before.close(targets[path])
        after.close(sources[path])
    return keep


class Ways:
    """Best ways on from states, over the row that is `best` for each to the state in `ends` that
    the row has, as far as a state that a kept way passes; first that is `last` alone.
    """

    def __init__(self, ends: np.ndarray, best: list[int], last: int):
        self.ends, self.best = ends.tolist(), best
        self.closed = np.zeros(len(best), dtype=bool)
        self.closed[last] = True

    def follow(self, state: int) -> Iterator[int]:
        """Yield the rows from a state on."""
        while not self.closed[state]:
            yield self.best[state]
            state = self.ends[self.best[state]]

    def close(self, states: np.ndarray) -> None:
        """Have ways end at these states."""
        self.closed[states] = True


def best_rows(states: np.ndarray, value: np.ndarray, count: int) -> list[int]:
    """Return for each of `count` states the row of the highest value among those that have it in
    `states`, the first of equals; -1: none.
    """
    return [max(rows, key=value.__getitem__, default=-1) for rows in arcs_by_state(states, count)]
