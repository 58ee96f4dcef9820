"""Minimum-risk weights: those with the least expected loss when hypotheses are drawn by the softmax of their totals.

Unlike the exact metric the expectation is smooth, so a gradient finds its minimum, and that minimum lies where small changes of the
weights matter little. The exact search starts from there (Smith and Eisner 2006).
"""

from collections.abc import Callable

import numpy as np

from lmtools.rescore.features import combine

ITERATIONS = 100
NUDGE = 1e-6  # relative change of a statistic for the metric's derivative


def minimise(function: Callable[[np.ndarray], tuple[float, np.ndarray]], start: np.ndarray) -> tuple[float, np.ndarray]:
    """A local minimum (value, place) of a smooth function that returns value and gradient: BFGS with backtracking."""
    place, inverse = start, np.eye(len(start))
    value, gradient = function(place)
    for _ in range(ITERATIONS):
        direction = -inverse @ gradient
        if gradient @ direction >= 0:  # rounding spoilt the curvature
            inverse, direction = np.eye(len(start)), -gradient
        direction *= min(1.0, 2.0 / max(np.abs(direction).max(), 1e-12))  # weights are logarithms: no wild jumps
        found = backtrack(function, place, value, gradient @ direction, direction)
        if found is None:
            break
        step, new, new_gradient = found
        converged = value - new < 1e-7 * abs(value)
        inverse = update(inverse, step, new_gradient - gradient)
        place, value, gradient = place + step, new, new_gradient
        if converged:
            break
    return value, place


def backtrack(function, place, value, descent, direction):
    """(step, value, gradient) of the first halving that lowers the function enough; None if none does."""
    for halving in range(20):
        step = direction * 0.5**halving
        new, gradient = function(place + step)
        if new <= value + 1e-4 * 0.5**halving * descent:
            return step, new, gradient
    return None


def update(inverse: np.ndarray, step: np.ndarray, change: np.ndarray) -> np.ndarray:
    """The BFGS update of the inverse Hessian; unchanged where the curvature is not positive."""
    curvature = change @ step
    if curvature <= 1e-12:
        return inverse
    left = np.eye(len(step)) - np.outer(step, change) / curvature
    return left @ inverse @ left.T + np.outer(step, step) / curvature


def expected(weights: np.ndarray, columns: np.ndarray, valid: np.ndarray, statistics: np.ndarray, loss) -> tuple[float, np.ndarray]:
    """The loss of the expected statistics, and its gradient with respect to the weights (features,).

    `columns` is (features, U, K), `statistics` (U, K, width), `loss` maps summed statistics (..., width) to numbers (...,).
    """
    totals = np.where(valid, combine(weights, columns), -np.inf)
    odds = np.exp(totals - totals.max(1, keepdims=True))
    posterior = odds / odds.sum(1, keepdims=True)
    sums = np.einsum("uk,uks->s", posterior, statistics)
    cost = statistics @ derivative(loss, sums)  # (U, K)
    pull = posterior * (cost - (posterior * cost).sum(1, keepdims=True))
    return float(loss(sums)), np.einsum("fuk,uk->f", columns, pull)


def derivative(loss, sums: np.ndarray) -> np.ndarray:
    """The loss's derivatives (width,) by central differences; it is smooth in the sums."""
    nudge = NUDGE * np.maximum(np.abs(sums), 1)
    around = sums + np.stack([np.diag(nudge), -np.diag(nudge)])  # (2, width, width)
    up, down = loss(around)
    return (up - down) / (2 * nudge)


def minimum_risk(columns, valid, statistics, loss, nonnegative: np.ndarray, start: float) -> tuple[float, np.ndarray]:
    """(risk, weights) at a local minimum reached from weights that are all `start`; the first weight is scaled to 1.

    Weights that may not be negative, the first among them, are searched as logarithms.
    """
    positive = np.append(True, nonnegative)

    def function(place):
        weights = np.where(positive, np.exp(np.minimum(place, 50)), place)
        value, gradient = expected(weights, columns, valid, statistics, loss)
        return value, np.where(positive, gradient * weights, gradient)

    risk, place = minimise(function, np.where(positive, np.log(start), start))
    weights = np.where(positive, np.exp(np.minimum(place, 50)), place)
    return risk, weights / max(weights[0], 1e-6)
