"""Weights of least expected loss: each list is a distribution over its hypotheses, and the loss is
of the statistics that it expects (minimum risk, Smith and Eisner 2006; for BLEU as Rosti et al.
2010).

p(hypothesis) is proportional to exp(weights . columns), so that the weights say how sharp it is,
too; `RIDGE` keeps it soft where the lists do not say. Every hypothesis of every list counts, where
the exact search sees only what is chosen: benchmarks/transfer.py has what that is worth.

One sharpness for all lists misleads where a column is far surer on some lists than on others, as
a pseudo-likelihood is on utterances of one word. `sharpen` then searches on exactly, and keeps what
it finds where the set leaves no doubt.
"""

from dataclasses import replace

import numpy as np
import scipy  # imports its parts, slow ones, when they are asked for

from lmtools.evaluate.significance import resample
from lmtools.rescoring.features import best, combine, deviate
from lmtools.rescoring.search import SearchSpace, descend

RIDGE = 0.3  # on the squared weights of columns of unit typical spread, divided by utterances
# of the first column and of the others; the loss has several valleys
STARTS = ((1.0, 0.0), (1.0, 0.5), (0.3, 1.0))
LEAST = 0.01  # weight of the first column, by which the others are divided
STEP = 1e-4  # of a sum, for the derivative of the loss
# what exact line searches have to gain: a share of the loss, and in all but so many of resamples
GAIN, DOUBT, RESAMPLES = 0.03, 0.01, 2000


def minimise_expected(space: SearchSpace) -> tuple[np.ndarray, float]:
    """Minimise the expected loss by L-BFGS-B from STARTS; return weights and loss."""
    spreads = np.array([typical_spread(column, space.valid) for column in space.columns])
    units = np.where(spreads > 0, spreads, 1.0)
    part = replace(
        space,
        columns=space.columns / units[:, None, None],
        statistics=space.statistics.astype(np.float64),
    )
    # a first column without differences keeps its weight
    first = (LEAST, None) if spreads[0] else (1.0, 1.0)
    bounds = [first, *((0, None) if low else (None, None) for low in space.nonnegative)]
    ends = [
        scipy.optimize.minimize(
            regularised,
            [first_weight, *[other] * len(space.nonnegative)],
            args=(part, RIDGE / len(space.valid)),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
        )
        for first_weight, other in STARTS
    ]
    weights = min(ends, key=lambda end: end.fun).x  # the first of equals
    scaled = weights / units
    return scaled / scaled[0], expected_loss(weights, part)[0]


def sharpen(space: SearchSpace, weights: np.ndarray, seed: int) -> tuple[np.ndarray, bool]:
    """Return the weights after exact line searches from `weights` and True, where the loss of the
    chosen hypotheses is then less by GAIN, and less in all but DOUBT of resampled sets (bootstrap
    of Bisani and Ney 2004); else `weights` and False.
    """
    sharper = descend(space, weights, np.random.default_rng(seed))
    loss = space.at(weights)
    if loss - space.at(sharper) < GAIN * abs(loss):
        return weights, False
    chosen = [best(combine(each, space.columns), space.valid) for each in (weights, sharper)]
    statistics = [space.statistics[np.arange(len(rows)), rows] for rows in chosen]
    sums = resample(np.hstack(statistics), seed, RESAMPLES)
    before, after = map(space.loss, np.split(sums, 2, axis=1))
    clear = bool(np.mean(after >= before) <= DOUBT)
    return (sharper if clear else weights), clear


def regularised(weights: np.ndarray, space: SearchSpace, ridge: float) -> tuple[float, np.ndarray]:
    """Return the expected loss with `ridge` times the squared weights, and its gradient."""
    loss, gradient = expected_loss(weights, space)
    return loss + ridge * float(weights @ weights), gradient + 2 * ridge * weights


def expected_loss(weights: np.ndarray, space: SearchSpace) -> tuple[float, np.ndarray]:
    """Return the loss of the expected statistics, and its gradient (1 + weights,)."""
    totals = np.where(space.valid, combine(weights, space.columns), -np.inf)
    odds = np.exp(totals - totals.max(1, keepdims=True))
    chances = odds / odds.sum(1, keepdims=True)
    sums = np.einsum("uk,ukw->w", chances, space.statistics)
    steps = np.diag(STEP * np.maximum(np.abs(sums), 1.0))
    above, below = space.loss(sums + steps), space.loss(sums - steps)
    costs = np.einsum("ukw,w->uk", space.statistics, (above - below) / (2 * steps.diagonal()))
    mean = (chances * costs).sum(1, keepdims=True)
    gradient = np.einsum("cuk,uk->c", space.columns, chances * (costs - mean))
    return float(space.loss(sums)), gradient


def typical_spread(column: np.ndarray, valid: np.ndarray) -> float:
    """Return the median standard deviation over the lists in which the column varies, or 0."""
    deviations, varies = deviate(column, valid)
    spreads = np.sqrt((deviations**2).sum(1) / valid.sum(1))
    return float(np.median(spreads[varies])) if varies.any() else 0.0
