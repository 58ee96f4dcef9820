"""Sums over all ways to and from every state, in the max and the log semiring, level by level.

The semiring's addition is a ufunc: np.maximum for the best way, np.logaddexp for the log of the
ways' summed probability.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np

from lmtools.lattice.arguments import check_arguments
from lmtools.lattice.order import levels, no_path
from lmtools.lattice.weights import total
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
