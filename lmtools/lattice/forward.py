"""Sums over all ways to and from every state, in the max and the log semiring, level by level.

The semiring's addition is a ufunc: np.maximum for the best way, np.logaddexp for the log of the
ways' summed probability. What is pruned, by beam or by budget, follows from them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np

from lmtools.lattice.order import arcs_by_state, levels, no_path, trim
from lmtools.lattice.weights import check_arguments, total
from lmtools.types import Lattice


def forward(
    lattice: Lattice, arcs: np.ndarray, plus: np.ufunc = np.maximum, level: np.ndarray | None = None
) -> np.ndarray:
    """Return the score (S,) of all ways from the start to each state, -inf for none, given the
    arcs' (A,).

    `level` (S,) is levels(lattice), where the caller has it already.
    """
    scores = np.full(lattice.states, -np.inf)
    scores[lattice.start] = 0
    for rows, firsts, states in sweep(
        lattice.target, levels(lattice) if level is None else level, lowest=1
    ):
        scores[states] = plus.reduceat(scores[lattice.source[rows]] + arcs[rows], firsts)
    return scores


def backward(
    lattice: Lattice, arcs: np.ndarray, finals: np.ndarray, plus: np.ufunc = np.maximum, level=None
) -> np.ndarray:
    """Return the score (S,) of all ways from each state to the end, -inf off every path; arguments
    as for `forward`.
    """
    level = levels(lattice) if level is None else level
    scores = np.full(lattice.states, -np.inf)
    scores[lattice.finals] = finals
    scores[level < 0] = -np.inf
    for rows, firsts, states in reversed(list(sweep(lattice.source, level))):
        scores[states] = plus(
            scores[states], plus.reduceat(arcs[rows] + scores[lattice.target[rows]], firsts)
        )
    return scores


def sweep(
    ends: np.ndarray, level: np.ndarray, lowest: int = 0
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield for each level from `lowest`, ascending: its arcs grouped by their state in `ends`
    (A,), where each group begins, the states.

    Unreachable states (level -1) are left out so, and with lowest=1 what leads from them to the
    start.
    """
    order = np.lexsort((ends, level[ends]))
    order = order[level[ends[order]] >= lowest]
    state = ends[order]
    firsts = changes(state)
    cuts = [*changes(level[state[firsts]]).tolist(), len(firsts)]
    bounds = [*firsts.tolist(), len(order)]
    for low, high in pairwise(cuts):
        yield (
            order[bounds[low] : bounds[high]],
            firsts[low:high] - bounds[low],
            state[firsts[low:high]],
        )


def changes(values: np.ndarray) -> np.ndarray:
    """Return the places where a value differs from the one before it, the first included."""
    return np.flatnonzero(
        np.concatenate([np.ones(min(1, len(values)), dtype=bool), values[1:] != values[:-1]])
    )


def through(
    lattice: Lattice, weights: Mapping[str, float], plus: np.ufunc = np.maximum, scale: float = 1.0
):
    """Return the score of all paths through each arc (A,), to each final state (F,), and of all.
    UserError where no path is possible.
    """
    arcs, finals = (
        np.where(column > -np.inf, scale * np.maximum(column, np.finfo(float).min), column)
        for column in total(lattice, weights)
    )
    level = levels(lattice)
    to, rest = (
        forward(lattice, arcs, plus, level),
        backward(lattice, arcs, finals, plus, level=level),
    )
    if rest[lattice.start] == -np.inf:
        raise no_path(lattice)
    return (
        to[lattice.source] + arcs + rest[lattice.target],
        to[lattice.finals] + finals,
        float(rest[lattice.start]),
    )


@check_arguments
def posteriors(
    lattice: Lattice, weights: Mapping[str, float], scale: float = 1.0
) -> tuple[np.ndarray, float]:
    """Return each arc's probability (A,), and the natural log of all paths' summed exp(scale *
    score).

    A path's probability is exp(scale * score) over that sum; `scale` flattens (below 1; 0: all are
    alike) or sharpens it. UserError where no path is possible.
    """
    arcs, _, everything = through(lattice, weights, np.logaddexp, scale)
    return np.minimum(np.exp(arcs - everything), 1.0), everything


@check_arguments
def add_posteriors(
    lattice: Lattice, weights: Mapping[str, float], scale: float = 1.0, beside: bool = True
) -> Lattice:
    """Return the lattice with arcs' posteriors as extra `p`, or their logs as score `am`."""
    probabilities, _ = posteriors(lattice, weights, scale)
    if beside:
        spelled = tuple(f"{value:.6g}" for value in probabilities)
        return replace(lattice, extra={**lattice.extra, "p": spelled})
    with np.errstate(divide="ignore"):
        scores = {"am": np.log(probabilities)}
    return replace(lattice, scores=scores, final_scores={"am": np.zeros(len(lattice.finals))})


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
