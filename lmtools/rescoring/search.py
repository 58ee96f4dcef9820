"""Weights of least corpus-level loss: exact line searches (Och 2003) along the axes and random
directions (Powell 1964).

The metric of a set of N-best lists along a line in the space of weights is piecewise constant. A
hypothesis's total is a line in the step t; the hypothesis chosen as t grows walks along the upper
envelope of its list's lines (Och 2003, Macherey et al. 2008). All lists walk at once.

The first column has weight 1. With one other weight the search is exact; with more it starts from
several places, and from where it ends without each of the other columns; the best end wins.
What is least on the set may be so by a single utterance: lmtools/rescoring/expected.py tunes by
default.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from lmtools.rescoring.features import best, combine

TINY = 1e-9  # of an angle: narrower intervals are rounding errors


@dataclass(frozen=True)
class Curve:
    """Piecewise constant sums: `totals[i]` (width,) from `edges[i]` on; the first is -inf."""

    edges: np.ndarray
    totals: np.ndarray

    @property
    def ends(self) -> np.ndarray:
        """Return the end of each interval; the last one is inf."""
        return np.append(self.edges[1:], np.inf)


def envelope(
    start: np.ndarray, slope: np.ndarray, valid: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which hypothesis is chosen from where on: arrays (changes,) of utterance, step and
    hypothesis; each utterance begins at -inf.

    `start` and `slope` (U, K) are totals at t = 0 and their change with t. Steps of one utterance
    come in growing order. The flattest line wins at -inf, then the higher one, then the earlier
    one; lines that are equal never replace each other.
    """
    flattest = np.where(valid, slope, np.inf).min(1, keepdims=True)
    current = np.where(valid & (slope == flattest), start, -np.inf).argmax(1)
    active, step = np.arange(len(start)), np.full(len(start), -np.inf)
    changes = [(active, step, current)]
    slope = np.where(valid, slope, -np.inf)  # padding never rises above anything
    while len(active):
        steeper, above = slope - here(slope, current), here(start, current) - start
        crossing = np.full(start.shape, np.inf)
        np.divide(above, steeper, out=crossing, where=steeper > 0)
        first = crossing.min(1)
        going = np.isfinite(first)
        start, slope, crossing, active = start[going], slope[going], crossing[going], active[going]
        current = np.where(crossing == first[going, None], slope, -np.inf).argmax(1)
        step = np.maximum(first[going], step[going])  # rounding must not turn back
        changes.append((active, step, current))
    return tuple(np.concatenate(parts) for parts in zip(*changes, strict=True))


def here(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the value at one place of each row (rows, 1)."""
    return np.take_along_axis(values, places[:, None], axis=1)


def sweep(start: np.ndarray, slope: np.ndarray, valid: np.ndarray, statistics: np.ndarray) -> Curve:
    """Sum the `statistics` (U, K, width) of what is chosen along the line start + t slope."""
    utterance, step, hypothesis = envelope(start, slope, valid)
    chosen = statistics[utterance, hypothesis]  # (changes, width)
    walk = np.argsort(utterance, kind="stable")
    change = chosen[walk]
    change[1:] -= np.where(
        (utterance[walk][1:] == utterance[walk][:-1])[:, None], chosen[walk][:-1], 0
    )
    by_step = np.argsort(step[walk], kind="stable")
    edges, totals = step[walk][by_step], np.cumsum(change[by_step], axis=0)
    # of the changes at one step only the sum exists
    last = np.append(edges[1:] != edges[:-1], True)
    return Curve(edges[last], totals[last])


def choose(
    curve: Curve, loss: np.ndarray, low: float, high: float, along: float, away: float
) -> float | None:
    """Return the step in the middle of the widest interval of least loss between `low` and `high`;
    None where the line has no edge there.

    Widths are angles of the weight vector, which alone decides the choice: at step t it is
    atan((along + t) / away), where `along` is where step 0 lies on the line and `away` the line's
    distance from the origin, in units of the step. So an unbounded interval has a middle too.
    Neighbours of equal loss are one interval.
    """
    ends = curve.ends
    inside = (ends > low) & (curve.edges < high)
    if inside.sum() < 2:
        return None
    begin = np.maximum(curve.edges[inside], low)
    end = np.minimum(ends[inside], high)
    loss = loss[inside]
    new = np.append(True, loss[1:] != loss[:-1])
    begin, end, loss = begin[new], end[np.append(new[1:], True)], loss[new]
    left, right = np.arctan((begin + along) / away), np.arctan((end + along) / away)
    width = np.where(right - left > TINY, right - left, 0)
    if not width.any():
        return None
    least = loss[width > 0].min()
    widest = np.where(loss == least, width, 0).argmax()
    return float(np.tan((left[widest] + right[widest]) / 2) * away - along)


def flat_region(
    curve: Curve, loss: np.ndarray, at: float, tolerance: float, low: float = -np.inf
) -> tuple[float, float]:
    """Return the stretch around step `at` with a loss within `tolerance` of the least from `low` to
    inf, or of that at `at` where the least is elsewhere.
    """
    home = int(np.searchsorted(curve.edges, at, side="right")) - 1
    good = loss <= max(loss[curve.ends > low].min() + tolerance, loss[home])
    first = home - int(np.append(~good[: home + 1][::-1], True).argmax()) + 1
    last = home + int(np.append(~good[home:], True).argmax()) - 1
    return max(float(curve.edges[first]), low), float(curve.ends[last])


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
