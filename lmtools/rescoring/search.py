"""Weights of least corpus-level loss: exact line searches (Och 2003) along the axes and random
directions (Powell 1964).

The first column has weight 1. With one other weight the search is exact; with more it starts from
several places, and from where it ends without each of the other columns; the best end wins.
What is least on the set may be so by a single utterance: lmtools/rescoring/expected.py tunes by
default.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from lmtools.rescoring.envelope import choose, sweep
from lmtools.rescoring.features import best, combine

STARTS = 8
ROUNDS = 10
# so many columns are searched without each of them, too: with one more, every set of columns is
WHOLE = 3


@dataclass(frozen=True)
class SearchSpace:
    """Columns (1 + weights, U, K) of about unit spread, statistics (U, K, width), their loss, and
    weights (weights,) that may not be below 0.
    """

    columns: np.ndarray
    valid: np.ndarray
    statistics: np.ndarray
    loss: Callable[[np.ndarray], np.ndarray]
    nonnegative: np.ndarray

    def at(self, weights: np.ndarray) -> float:
        """Return the loss of the hypotheses that `weights` (1 + weights,) choose."""
        chosen = best(combine(weights, self.columns), self.valid)
        return float(self.loss(self.statistics[np.arange(len(chosen)), chosen].sum(0)))


def search(space: SearchSpace, seed: int) -> np.ndarray:
    """Search the weights (1 + weights,) of least loss; the first is 1. Deterministic."""
    count = len(space.nonnegative)
    nothing = np.append(1.0, np.zeros(count))
    if count == 0:
        return nothing
    if count == 1:
        return line_search(space, nothing, np.array([0.0, 1.0]))
    ends = descents(space, seed)
    losses = list(map(space.at, ends))
    more = dropped(space, seed)
    further = list(map(space.at, more))
    if min(further) < min(losses):  # an equal end is no reason for other weights
        ends, losses = ends + more, losses + further
    return ends[int(np.argmin(losses))]  # the first of equals


def descents(space: SearchSpace, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    drawn = rng.normal(size=(STARTS - 1, len(space.nonnegative)))
    drawn = np.where(space.nonnegative, np.abs(drawn), drawn)
    starts = np.insert(np.vstack([np.zeros(len(space.nonnegative)), drawn]), 0, 1.0, axis=1)
    return [descend(space, start, rng) for start in starts]


def dropped(space: SearchSpace, seed: int) -> list[np.ndarray]:
    """Return the search's ends without each column, never worse than the best there."""
    ends = []
    for place in range(1, len(space.columns)):
        part = replace(
            space,
            columns=np.delete(space.columns, place, 0),
            nonnegative=np.delete(space.nonnegative, place - 1),
        )
        best_part = (
            search(part, seed)
            if len(part.nonnegative) <= WHOLE
            else min(descents(part, seed), key=part.at)
        )
        start = np.insert(best_part, place, 0.0)
        ends.append(descend(space, start, np.random.default_rng(seed)))
    return ends


def descend(space: SearchSpace, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Improve `weights` by line searches along axes and random directions while that gains."""
    loss = space.at(weights)
    for _ in range(ROUNDS):
        axes = np.eye(len(weights))[1:]
        random = np.pad(rng.normal(size=(len(axes), len(axes))), ((0, 0), (1, 0)))
        for direction in [*random, *axes]:
            weights = line_search(space, weights, direction)
        previous, loss = loss, space.at(weights)
        if loss >= previous:
            break
    return weights


def line_search(space: SearchSpace, weights: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return the best weights on a line, in the middle of the widest interval of equal loss."""
    curve = sweep(
        combine(weights, space.columns),
        combine(direction, space.columns),
        space.valid,
        space.statistics,
    )
    length = np.sqrt(direction @ direction)
    along = (weights @ direction) / length
    away = np.sqrt(max(weights @ weights - along**2, 1e-12))
    low, high = bounds(weights, direction, space.nonnegative)
    losses, place = space.loss(curve.totals), {"along": along / length, "away": away / length}
    step = choose(curve, losses, low, high, **place)
    if step is None:
        return weights
    new = weights + step * direction
    new[1:] = np.where(space.nonnegative, np.maximum(new[1:], 0), new[1:])
    return new if space.at(new) <= space.at(weights) else weights


def bounds(
    weights: np.ndarray, direction: np.ndarray, nonnegative: np.ndarray
) -> tuple[float, float]:
    """Return the steps between which no weight that may not be negative is negative."""
    bound = np.append(False, nonnegative) & (direction != 0)
    steps = -weights[bound] / direction[bound]
    rising = direction[bound] > 0
    return max(steps[rising], default=-np.inf), min(steps[~rising], default=np.inf)
