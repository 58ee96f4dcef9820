"""Sign of scores: higher or lower is better, by the errors of the hypotheses that they choose."""

import numpy as np

ENOUGH = 10  # lists that say something
SURE = 3.0  # standard errors of the mean difference


def are_costs(values: np.ndarray, valid: np.ndarray, gains: np.ndarray) -> bool | None:
    """Return whether the lowest of `values` (U, K) choose better than the highest, by the quality
    of each hypothesis (`gains`, higher is better); None where the difference is within doubt.
    """
    if not valid.size:
        return None
    rows = np.arange(len(values))
    lowest = np.where(valid, values, np.inf).argmin(1)
    highest = np.where(valid, values, -np.inf).argmax(1)
    better = (gains[rows, lowest] - gains[rows, highest])[lowest != highest]
    if len(better) < ENOUGH or not better.any():
        return None
    doubt = better.std() / np.sqrt(len(better))
    return None if abs(better.mean()) <= SURE * doubt else bool(better.mean() > 0)


def are_positive(values: np.ndarray) -> bool:
    """Return whether nearly all values that are not 0 are positive, as no log-probability is; those
    that are but 0 and 1, as of which system a hypothesis is, are no scores.
    """
    many = (values > 0).sum() > 0.99 * (values != 0).sum() > 0
    return bool(many and not is_indicator(values))


def is_indicator(values: np.ndarray) -> bool:
    """Return whether there are both 0 and 1 and nothing else."""
    return bool(np.isin(values, (0, 1)).all() and np.ptp(values))
