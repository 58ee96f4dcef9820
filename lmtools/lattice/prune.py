"""Smaller lattices: the arcs of the best paths, by beam or by budget."""

from collections.abc import Mapping

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
    """Return which rows (A + F,), arcs, then finals, fit the budget by the best path through each;
    the end is a state beyond all.
    """
    size, end = len(lattice.words), lattice.states
    sources = np.append(lattice.source, lattice.finals)
    targets = np.append(lattice.target, np.full(len(lattice.finals), end))
    before, after = best_rows(targets, value, end + 1), best_rows(sources, value, end + 1)
    source, target = sources.tolist(), targets.tolist()
    # kept rows come here, go on from here
    reached, led = np.zeros(end + 1, dtype=bool), np.zeros(end + 1, dtype=bool)
    reached[lattice.start] = led[end] = True
    keep = np.zeros(len(value), dtype=bool)
    budget, spent = np.inf if arcs is None else arcs, 0
    for row in np.argsort(-value, kind="stable").tolist():
        if value[row] == -np.inf:
            break
        if keep[row]:
            continue
        path = [row, *follow_best(source[row], before, source, reached)]
        path += follow_best(target[row], after, target, led)
        cost = sum(row < size for row in path)
        if not spent and density is not None:  # this is the best path
            words = sum(row < size and lattice.words[row] is not None for row in path)
            budget = min(budget, density * max(1, words))
        if keep.any() and spent + cost > budget:
            break
        spent += cost
        keep[path] = True
        reached[targets[path]] = led[sources[path]] = True
    return keep


def follow_best(state: int, best: list[int], ends: list[int], closed: np.ndarray) -> list[int]:
    """Return the best rows from a state on, whose other `ends` lead to one that is `closed`."""
    rows = []
    while not closed[state]:
        rows.append(best[state])
        state = ends[rows[-1]]
    return rows


def best_rows(states: np.ndarray, value: np.ndarray, count: int) -> list[int]:
    """Return the first of each state's best rows, -1 for none."""
    return [max(rows, key=value.__getitem__, default=-1) for rows in arcs_by_state(states, count)]
