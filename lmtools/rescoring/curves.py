"""Curves of the metric over the scale of one feature, and the region in which it is flat."""

from collections.abc import Callable, Mapping

import numpy as np

from lmtools.evaluate import METRICS
from lmtools.rescoring.envelope import flat_region, sweep
from lmtools.rescoring.features import Features, combine, deviate
from lmtools.rescoring.tuning_options import INTERPOLATION, TuningOptions

FLAT = 0.1  # absolute: scales within this of the best metric are as good for all one knows
POINTS = 400  # at most, of a stored curve


def loss_of(metric: str) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function to minimise of summed statistics (..., width): the metric, or minus it
    where more is better.
    """
    measure = METRICS[metric]
    return measure.score if measure.lower_is_better else lambda totals: -measure.score(totals)


def spread(column: np.ndarray, valid: np.ndarray) -> float:
    """Return the standard deviation of a column inside its lists, pooled; 0 where no list has two
    different values.
    """
    deviations, varies = deviate(column, valid)
    return float(np.sqrt((deviations**2).sum() / valid.sum())) if varies.any() else 0.0


def scale_curve(
    name: str,
    features: Features,
    weights: Mapping[str, float],
    statistics: np.ndarray,
    options: TuningOptions,
) -> dict:
    """Return the metric over the scale of feature `name`, other weights as tuned, with its flat
    region: see Weights.
    """
    rest = combine(
        [0.0 if other == name else weight for other, weight in weights.items()], features.values
    )
    curve = sweep(rest, features.column(name), features.valid, statistics)
    low = 0.0 if options.at_least_0(name) else -np.inf
    losses = loss_of(options.metric)(curve.totals)
    flat = flat_region(curve, losses, weights[name], tolerance=FLAT, low=low)
    high = 1.5 * flat[1] if np.isfinite(flat[1]) else 3 * weights[name]
    high = (
        max(high, 3 * weights[name])
        or spread(rest, features.valid) / (spread(features.column(name), features.valid) or 1.0)
        or 1.0
    )
    begin = min(0.0, 3 * weights[name], 1.5 * max(flat[0], -high))
    scales = sample(curve.edges, begin, high, weights[name])
    metric = np.abs(losses[np.searchsorted(curve.edges, scales, side="right") - 1])
    points, ends = np.stack([scales, metric], axis=1), np.clip(flat, begin, high)
    chosen = weights[name]
    if options.form == INTERPOLATION:
        points[:, 0] = points[:, 0] / (1 + points[:, 0])
        ends = ends / (1 + ends)
        chosen = chosen / (1 + chosen)
    return {"chosen": chosen, "flat": ends.tolist(), "points": points.tolist()}


def sample(edges: np.ndarray, low: float, high: float, at: float) -> np.ndarray:
    """Return scales from `low` to `high`: every edge between them, or POINTS even steps where there
    are more edges; `at` is always among them.
    """
    inside = edges[(edges > low) & (edges < high)]
    if len(inside) > POINTS:
        inside = np.linspace(low, high, POINTS)
    return np.unique(np.concatenate([[low, at, high], inside]))
