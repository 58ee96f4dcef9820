"""Exact upper bounds of shares that were counted: how often something happens at most."""

from collections.abc import Sequence

import numpy as np
from scipy.special import betaincinv

LEVEL = 0.95  # confidence of the bounds


def bound_share(count: float, total: float, level: float = LEVEL) -> float:
    """Return the upper bound of a share of which `count` of `total` were seen: the greatest share
    by which so few are seen with probability 1 - level (Clopper and Pearson 1934, one-sided). Of
    nothing the bound is 1.
    """
    return 1.0 if count >= total else float(betaincinv(count + 1, total - count, level))


def bound_clustered(counts: Sequence[int], sizes: Sequence[int], level: float = LEVEL) -> float:
    """Return the bound of sum(counts) / sum(sizes) where what is counted comes in clusters, as
    edits in sentences: `bound_share` of numbers that are divided by the design effect, where it is
    above 1 (Korn and Graubard 1998).
    """
    number, size = np.asarray(counts, np.float64), np.asarray(sizes, np.float64)
    total = float(size.sum())
    if total == 0:
        return 1.0
    share = float(number.sum()) / total
    effect = 1.0
    if 0 < share < 1:
        rows = len(number)
        apart = float(((number - share * size) ** 2).sum()) * rows / max(rows - 1, 1)
        effect = max(1.0, apart / (total * share * (1 - share)))
    return bound_share(number.sum() / effect, total / effect, level)
