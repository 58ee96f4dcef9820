"""The margin by which a new hypothesis, which no first pass had, must win: searched on dev, where
it has to save errors beyond doubt, or else none ever wins.
"""

import numpy as np

from lmtools.rescoring.envelope import sweep
from lmtools.rescoring.features import NEAR, Features, best, own_hypotheses

SURE = 2.0  # standard errors (root of the sum of squared changes by list) that must be saved
NEVER = 200.0  # times the greatest difference of totals in a list: by that none wins


def find_margin(rest: np.ndarray, features: Features, gains: np.ndarray) -> dict:
    """Return the `margin`, the weight of NEAR beside the totals `rest`, and the sums of `gains`
    (both (utterances, hypotheses)) without new hypotheses and with them.

    Of the weights with the most gain the middle of the greatest stretch, as caution has it.
    """
    rows = np.arange(len(rest))
    kept = gains[rows, best(rest, own_hypotheses(features).valid)]
    changes = gains - kept[:, None]
    statistics = np.stack([changes, changes**2], axis=-1)
    curve = sweep(rest, features.column(NEAR), features.valid, statistics)
    inside = curve.ends > 0
    totals, ends = curve.totals[inside], curve.ends[inside]
    begins = np.maximum(curve.edges[inside], 0)
    sure = totals[:, 0] >= SURE * np.sqrt(totals[:, 1])
    sure &= totals[:, 0] > 0
    note = {"without": float(kept.sum()), "with": float(kept.sum()), "new": bool(sure.any())}
    if not sure.any():
        apart = np.ptp(np.where(features.valid, rest, rest[:, :1]), axis=1).max()
        return {**note, "margin": NEVER * float(apart or 1.0)}
    gained = np.where(sure, totals[:, 0], -np.inf)
    place = int(np.flatnonzero(gained == gained.max())[-1])
    first = place
    while first and gained[first - 1] == gained[place]:
        first -= 1
    end = ends[place] if np.isfinite(ends[place]) else 2 * begins[place] + 1
    margin = float(begins[first] + end) / 2
    return {**note, "with": float(kept.sum() + gained[place]), "margin": margin}
