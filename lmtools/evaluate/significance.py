"""Tests of the difference of two systems: matched pairs (MAPSSWE) and the exact sign test for word
errors; for every metric the paired bootstrap, and sign flips of whole groups, such as speakers.
What p and what interval a set can have at all is decided in `chance`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmtools.evaluate.chance import (
    FEW,
    Interval,
    Tested,
    bound_none,
    interval,
    judge_draws,
    say_why,
    sign_test,
)
from lmtools.evaluate.edits import Alignment
from lmtools.evaluate.metrics import METRICS
from lmtools.evaluate.sacre import SacrePaired

RESAMPLES = 10_000
BOUNDARY = 2  # correct words that bound a segment
BLOCK = 1 << 22  # resampled utterances drawn at once
EXACT = FEW - 1  # groups up to which sign flips are counted, not drawn


@dataclass(frozen=True)
class MatchedPairs(Tested):
    """Result of the matched pairs test: differences are errors of the first system minus errors of
    the second, a segment; the first is `better` in so many segments, and `worse` in others.

    `z` is negative where the first system is better; `p` is two-tailed. Where the differences do
    not vary, `z` is None, since it is not defined, and `p` is that of the sign test. `mean` and
    `deviation` are None where there are too few segments for them.
    """

    segments: int
    mean: float | None
    deviation: float | None
    z: float | None
    p: float
    better: int
    worse: int
    unit = "segment"

    @property
    def sign_p(self) -> float:
        """Two-tailed p of the exact sign test of the segments."""
        return sign_test(self.better, self.worse)

    @property
    def units(self) -> int:
        return self.segments


@dataclass(frozen=True)
class Bootstrap(Tested):
    """Result of the paired bootstrap: scores of both systems, first minus second, and their 95%
    intervals.

    `improvement` is the share of resamples in which the first system is better, `p` is two-sided,
    `sign_p` that of the exact sign test of so many `units`.
    """

    score: float
    against: float
    difference: float
    score_interval: Interval
    against_interval: Interval
    difference_interval: Interval
    improvement: float
    p: float | None
    resamples: int
    seed: int
    units: int
    sign_p: float


# by name in JSON, the first test of a metric first
TESTS: dict[str, type[Tested]] = {
    "matched_pairs": MatchedPairs,
    "sacre": SacrePaired,
    "bootstrap": Bootstrap,
}


def matched_pairs(first: Sequence[Alignment], second: Sequence[Alignment]) -> MatchedPairs:
    """Return the matched pairs sentence-segment word error test (Gillick and Cox 1989) of two
    systems' words aligned with the same references.

    Segments are stretches with an error of either system, bounded by at least two words that both
    have right or by the ends of the utterance. The statistic is sqrt(n) mean / deviation, referred
    to the normal distribution; where the differences do not vary, the exact sign test takes its
    place (sc_stats says 0 there), and p is never below the smallest p of that test. Else equal to
    sc_stats on equal alignments; sclite's have more correct words than `align`'s and so a few
    segments more.
    """
    pairs = [
        segment_errors(slots(left.steps), slots(right.steps))
        for left, right in zip(first, second, strict=True)
    ]
    return z_test(np.concatenate([np.zeros((0, 2), dtype=np.int64), *pairs]))


def slots(steps: str) -> np.ndarray:
    """Return errors by place (2 words + 1,): insertions at even indices, wrong words at odd."""
    errors = [0]
    for step in steps:
        if step == "I":
            errors[-1] += 1
        else:
            errors += [int(step != "C"), 0]
    return np.array(errors)


def segment_errors(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return errors of both systems in each segment (segments, 2), from both systems' `slots`."""
    wrong = np.flatnonzero(first + second)
    if not len(wrong):
        return np.zeros((0, 2), dtype=np.int64)
    # words that both have right between one error and the next
    between = wrong[1:] // 2 - (wrong[:-1] + 1) // 2
    starts = np.flatnonzero(np.concatenate([[True], between >= BOUNDARY]))
    return np.add.reduceat(np.stack([first, second], axis=1)[wrong], starts)


def z_test(segments: np.ndarray) -> MatchedPairs:
    """Return the test of whether the mean difference of `segments` (n, 2) is zero."""
    difference = segments[:, 0] - segments[:, 1]
    n = len(difference)
    mean = float(difference.mean()) if n else None
    deviation = float(difference.std(ddof=1)) if n > 1 else None
    better, worse = int((difference < 0).sum()), int((difference > 0).sum())
    z = mean * math.sqrt(n) / deviation if deviation else None
    least = sign_test(n, 0)
    p = sign_test(better, worse) if z is None else max(math.erfc(abs(z) / math.sqrt(2)), least)
    return MatchedPairs(n, mean, deviation, z, p=p, better=better, worse=worse)


def resample(statistics: np.ndarray, seed: int, resamples: int = RESAMPLES) -> np.ndarray:
    """Return summed statistics (resamples, width) of utterances drawn with replacement."""
    utterances = len(statistics)
    rng = np.random.default_rng(seed)
    rows = max(1, BLOCK // utterances)
    sums = []
    for start in range(0, resamples, rows):
        count = min(rows, resamples - start)
        drawn = (
            rng.integers(utterances, size=(count, utterances))
            + utterances * np.arange(count)[:, None]
        )
        times = np.bincount(drawn.ravel(), minlength=count * utterances).reshape(count, utterances)
        sums.append(times.astype(np.float64) @ statistics)
    return np.concatenate(sums)


def confidence(
    statistics: np.ndarray, metric: str, seed: int, resamples: int = RESAMPLES
) -> Interval:
    """Return the 95% interval by the bootstrap over utterances (Bisani and Ney 2004); of no errors
    the one-sided one of `bound_none`, over the words (units) of the references.
    """
    draws = score_draws(METRICS[metric], resample(statistics, seed, resamples))
    return score_interval(draws, statistics, METRICS[metric])


def score_interval(draws: np.ndarray, statistics: np.ndarray, measure) -> Interval:
    """Return the interval of the score of utterances (utterances, width) from its `draws`."""
    total, units = statistics.sum(0), len(statistics)
    length = float(measure.length(total))
    if units > 1 and length > 0 and measure.lower_is_better and not measure.score(total):
        return 0.0, bound_none(length)
    return interval(draws, units)


def score_draws(measure, sums: np.ndarray) -> np.ndarray:
    """Return the metric of resampled sums; NaN where references have nothing to compare with."""
    return np.where(measure.length(sums) > 0, measure.score(sums), np.nan)


def paired_bootstrap(
    first: np.ndarray, second: np.ndarray, metric: str, seed: int, resamples: int = RESAMPLES
) -> Bootstrap:
    """Return the paired bootstrap (Bisani and Ney 2004) of two systems' statistics (utterances,
    width), the same draws for both.

    For p see `judge_draws`.
    """
    assert first.shape == second.shape, (first.shape, second.shape)
    measure = METRICS[metric]
    left, right = (
        score_draws(measure, sums)
        for sums in np.split(resample(np.hstack([first, second]), seed, resamples), 2, axis=1)
    )
    better = left < right if measure.lower_is_better else left > right
    score, against = float(measure.score(first.sum(0))), float(measure.score(second.sum(0)))
    p, sign_p = judge_draws(left - right, measure.gain(first) - measure.gain(second))
    units = len(first)
    return Bootstrap(
        score, against, score - against, resamples=resamples, seed=seed, units=units,
        score_interval=score_interval(left, first, measure),
        against_interval=score_interval(right, second, measure),
        difference_interval=interval(left - right, units),
        improvement=float(better.mean()), p=p, sign_p=sign_p,
    )  # fmt: skip


@dataclass(frozen=True)
class GroupTests:
    """Tests with whole groups of utterances as units: two-sided p of the paired bootstrap and of
    sign flips, None where undefined, and in how many groups the first system is better or worse.
    """

    groups: int
    better: int
    worse: int
    bootstrap_p: float | None
    flips_p: float | None

    def describe(self, unit: str) -> str:
        """Return both p; where one is undefined, why."""
        flips = "" if self.flips_p is None else f", sign flips p = {self.flips_p:.2g}"
        known = self.bootstrap_p is not None
        p = f"{self.bootstrap_p:.2g}" if known else f"- ({say_why(self.groups, unit)})"
        return f"bootstrap p = {p}{flips}"


def compare_groups(
    first: np.ndarray, second: np.ndarray, groups: Sequence[str], metric: str, seed: int
) -> GroupTests:
    """Return the tests of two systems' statistics (utterances, width), summed over the utterances
    of a group (Bisani and Ney 2004 draw speakers where utterances depend on them); `groups` has the
    group of each utterance.
    """
    measure = METRICS[metric]
    places = {name: place for place, name in enumerate(dict.fromkeys(groups))}
    first, second = (
        sum_groups(statistics, [places[name] for name in groups]) for statistics in (first, second)
    )
    gains = measure.score(second) - measure.score(first)
    gains = np.nan_to_num(gains if measure.lower_is_better else -gains)
    better, worse = int((gains > 0).sum()), int((gains < 0).sum())
    p = paired_bootstrap(first, second, metric, seed).p
    flips = flip_signs(first, second, metric, seed) if len(first) > 1 else None
    return GroupTests(len(first), better, worse, bootstrap_p=p, flips_p=flips)


@dataclass(frozen=True)
class Gains:
    """Who gains: in how many of `units` (utterances or whole groups) the first system is better or
    worse than the second; in how many the second and the first have errors; both scores (second,
    first) of the thirds of the units by the mean of both systems' scores, an order that neither
    chooses. It describes and tests nothing.
    """

    units: int
    better: int
    worse: int
    wrong: tuple[int, int]
    thirds: tuple[tuple[float, float], ...]

    def describe(self, metric: str, unit: str = "utterance") -> str:
        line = f"{self.units} {unit}s: {self.better} better, {self.worse} worse"
        if unit == "utterance":
            line += f", with errors {self.wrong[0]} -> {self.wrong[1]}"
        thirds = ", ".join(f"{before:.2f} -> {after:.2f}" for before, after in self.thirds)
        title = f"{METRICS[metric].title} of thirds by the mean of both (descriptive)"
        return f"{line}; {title}: {thirds}" if thirds else line


def find_gains(
    first: np.ndarray, second: np.ndarray, metric: str, groups: Sequence[str] = ()
) -> Gains:
    """Return who gains of two systems' statistics (utterances, 4) of an error rate, by whole
    `groups` if each utterance's is given; thirds only of three units and more.
    """
    if groups:
        places = {name: place for place, name in enumerate(dict.fromkeys(groups))}
        rows = [places[name] for name in groups]
        first, second = sum_groups(first, rows), sum_groups(second, rows)
    score = METRICS[metric].score
    after, before = score(first), score(second)
    order = np.argsort(after + before, kind="stable")
    thirds = np.array_split(order, 3) if len(order) > 2 else []
    return Gains(
        len(order),
        int((after < before).sum()),
        int((after > before).sum()),
        (int((before > 0).sum()), int((after > 0).sum())),
        tuple((float(score(second[p].sum(0))), float(score(first[p].sum(0)))) for p in thirds),
    )


def sum_groups(statistics: np.ndarray, places: Sequence[int]) -> np.ndarray:
    sums = np.zeros((max(places) + 1, statistics.shape[1]), dtype=statistics.dtype)
    np.add.at(sums, places, statistics)
    return sums


def flip_signs(first: np.ndarray, second: np.ndarray, metric: str, seed: int) -> float:
    """Return the two-sided p of exchanging the systems in whole groups: the share of exchanges that
    part the systems as far as they are. All exchanges of up to EXACT groups, else RESAMPLES drawn
    ones, with one added to numerator and denominator.
    """
    score, groups = METRICS[metric].score, len(first)
    if exact := groups <= EXACT:
        flips = np.arange(1 << groups)[:, None] >> np.arange(groups) & 1
    else:
        flips = np.random.default_rng(seed).integers(2, size=(RESAMPLES, groups))
    moved = flips @ (second - first)
    differences = score(first.sum(0) + moved) - score(second.sum(0) - moved)
    observed = abs(score(first.sum(0)) - score(second.sum(0)))
    far = int((np.abs(differences) >= observed - 1e-9).sum())
    return float(far / len(flips) if exact else (far + 1) / (len(flips) + 1))


def holm(chances: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p of several tests: the k-th smallest of n times n - k + 1, at least
    those of smaller ones, at most 1 (Holm 1979).
    """
    order = np.argsort(chances, kind="stable")
    raised = np.asarray(chances, dtype=float)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(1, np.maximum.accumulate(raised))
    return adjusted.tolist()
