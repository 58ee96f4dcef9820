"""What p and what interval a set can have: every printer of either asks here.

Resampling says nothing of one unit (an utterance, a speaker, a pair), nor of units that are alike.
Of fewer than FEW units the exact sign test stands beside p. Of n units no p is below 2 / 2^n, the
smallest that the sign test can have.
"""

import numpy as np

LEVEL = 95  # per cent, of the confidence intervals
FEW = 20  # units, of fewer of which a p needs the exact sign test beside it
ALIKE = 1e-9  # resampled figures that differ by less are the same
Interval = tuple[float, float] | None  # None: undefined


def qualify_p(p: float | None, units: int, sign_p: float, unit: str = "utterance") -> str:
    """Return what has to stand behind a p: the exact sign test of fewer than FEW units, or why
    there is none.
    """
    why = f" ({say_why(units, unit)})" if p is None else ""
    if units < 2 or (p is not None and units >= FEW):
        return why
    return f"{why}; exact sign test of {units} {unit}s, p = {sign_p:.2g}"


class Tested:
    """A test of the difference of two systems, with `p`, the `units` that were compared, and `p` of
    their exact sign test.
    """

    unit = "utterance"
    p: float | None

    def describe(self) -> str:
        """Return p with what has to stand beside it."""
        return f"p = {'-' if self.p is None else f'{self.p:.2g}'}{self.qualify()}"

    def qualify(self) -> str:
        """Return what has to stand beside p, if anything."""
        return qualify_p(self.p, self.units, self.sign_p, self.unit)


def say_why(units: int, unit: str = "utterance") -> str:
    """Return why figures of resampled units are undefined."""
    return (f"no {unit}", f"one {unit}")[units] if units < 2 else f"all {units} {unit}s alike"


def interval(scores: np.ndarray, units: int) -> Interval:
    """Return the central 95% of the scores of resampled units; None where these are fewer than
    two, or the scores are the same or undefined.
    """
    known = scores[~np.isnan(scores)]
    if units < 2 or not len(known) or np.ptp(known) < ALIKE:
        return None
    low, high = np.percentile(known, [50 - LEVEL / 2, 50 + LEVEL / 2])
    return float(low), float(high)


def bound_none(count: float) -> float:
    """Return the one-sided 95% bound, in percent, of what was found in none of `count`, which are
    independent (Clopper and Pearson 1934; about 300 / count, the rule of three).
    """
    return 100 * (1 - (1 - LEVEL / 100) ** (1 / count))


def judge_draws(gaps: np.ndarray, own: np.ndarray) -> tuple[float | None, float]:
    """Return what `limit_p` does of resampled differences `gaps`: p is 2 min(share not above 0,
    share not below 0), each with one added to numerator and denominator.
    """
    tail = min((~(gaps > 0)).sum(), (~(gaps < 0)).sum()) + 1
    return limit_p(2 * tail / (len(gaps) + 1), own, alike=interval(gaps, len(own)) is None)


def limit_p(p: float, own: np.ndarray, *, alike: bool) -> tuple[float | None, float]:
    """Return a two-sided p as the differences of units, `own` (units,), permit it: None of fewer
    than two, or where they are `alike` but not 0, and else at least the smallest p of the exact
    sign test; and the p of that test.
    """
    units, (above, below) = len(own), (int((part > 0).sum()) for part in (own, -own))
    sign_p = sign_test(above, below)
    if units < 2 or (alike and above + below):
        return None, sign_p
    return 1.0 if alike else float(np.clip(p, sign_test(units, 0), 1)), sign_p


def sign_test(better: int, worse: int) -> float:
    """Return the two-tailed p of so uneven a split, if either side is as likely; 1 of nothing."""
    n, tail, term = better + worse, 0, 1
    for few in range(min(better, worse) + 1):
        tail += term
        term = term * (n - few) // (few + 1)
    return min(1.0, 2 * tail / 2**n)
