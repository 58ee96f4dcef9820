"""Cosines and correlations against scipy, the task's own script, brute force, published examples
and simulation.
"""

import math
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import spatial, stats

from lmtools.base.errors import UserError
from lmtools.vectors.similarity import Correlation, cosines, pearson, spearman, williams, within


def sample(seed: int, n: int, *weights: float) -> np.ndarray:
    """Gold (n,) and columns that are correlated with it by weight: (1 + weights, n)."""
    rng = np.random.default_rng(seed)
    gold = rng.normal(size=n)
    return np.stack([gold, *(weight * gold + rng.normal(size=n) for weight in weights)])


def by_sums(gold, values) -> float:
    """Pearson's correlation as STS Benchmark's correlation.pl takes it: from five sums."""
    n, x, y = len(gold), math.fsum(gold), math.fsum(values)
    xx, yy, xy = (
        math.fsum(a * b for a, b in zip(*sides, strict=True))
        for sides in ((gold, gold), (values, values), (gold, values))
    )
    return (n * xy - x * y) / math.sqrt((n * xx - x * x) * (n * yy - y * y))


def mean_ranks(values) -> list[float]:
    """Ranks from 1 by counting pairs; equal values share the mean of theirs."""
    return [
        1
        + sum(other < value for other in values)
        + (sum(other == value for other in values) - 1) / 2
        for value in values
    ]


@pytest.mark.parametrize(
    ("seed", "n", "weight", "level"),
    [(1, 4, 1, 0.95), (2, 30, 2, 0.95), (3, 200, 0.1, 0.9), (4, 1379, -5, 0.99)],
)
def test_pearson_is_scipys_and_the_tasks(seed, n, weight, level):
    gold, values = sample(seed, n, weight)
    found = pearson(gold, values, level)
    interval = stats.pearsonr(gold, values).confidence_interval(level)
    assert found == pytest.approx((by_sums(gold, values), interval.low, interval.high), abs=1e-12)
    assert found.low < found.value < found.high


def test_spearman_by_brute_force_with_ties():
    for seed, n in ((1, 4), (2, 12), (3, 60)):
        gold, values = np.round(sample(seed, n, 1.5))
        found = spearman(gold, values)
        assert found.value == pytest.approx(
            by_sums(mean_ranks(gold), mean_ranks(values)), abs=1e-12
        )
        z = math.atanh(found.value)
        # Bonett and Wright's
        reach = 1.959963984540054 * math.sqrt((1 + found.value**2 / 2) / (n - 3))
        assert found == pytest.approx(
            (found.value, math.tanh(z - reach), math.tanh(z + reach)), abs=1e-12
        )


@pytest.mark.parametrize(
    ("correlate", "of"),
    [(pearson, lambda rho: rho), (spearman, lambda rho: 6 / math.pi * math.asin(rho / 2))],
)
def test_intervals_hold_the_truth_as_often_as_they_say(correlate, of):
    """Of normal pairs with correlation rho, Spearman's is 6/pi asin(rho/2)."""
    rng, rho, hits = np.random.default_rng(5), 0.7, 0
    for _ in range(400):
        gold, noise = rng.normal(size=(2, 60))
        found = correlate(gold, rho * gold + math.sqrt(1 - rho**2) * noise, 0.9)
        hits += found.low <= of(rho) <= found.high
    assert 0.86 <= hits / 400 <= 0.94  # 0.9, and 2.7 standard deviations


@pytest.mark.parametrize("correlate", [pearson, spearman])
def test_perfect_agreement(correlate):
    gold = np.array([0.0, 1.0, 2.0, 5.0, 3.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert correlate(gold, gold) == pytest.approx((1, 1, 1), abs=1e-12) and isinstance(
            correlate(gold, gold), Correlation
        )
        assert correlate(gold, -gold) == pytest.approx((-1, -1, -1), abs=1e-12)
        assert within(1.0, 0.5, 0.95) == (1, 1, 1) and within(-1.0, 0.5, 0.95) == (-1, -1, -1)


numbers = st.floats(-100, 100).map(lambda value: round(value, 2))
columns = st.integers(4, 20).flatmap(
    lambda n: st.tuples(*[st.lists(numbers, min_size=n, max_size=n)] * 3)
)


def varied(*lists) -> list[np.ndarray]:
    assume(all(len(set(values)) > 1 for values in lists))
    return list(map(np.array, lists))


@settings(max_examples=100, deadline=None)
@given(columns, st.floats(0.01, 100), st.floats(-100, 100))
def test_what_correlations_do_not_depend_on(lists, slope, offset):
    gold, first, second = varied(*lists)
    moved = slope * first + offset
    for correlate in (pearson, spearman):
        found = correlate(gold, first)
        assert -1 <= found.low <= found.value <= found.high <= 1
        assert correlate(first, gold) == pytest.approx(found, abs=1e-9)
        assert pearson(gold, moved) == pytest.approx(pearson(gold, first), abs=1e-6)
        negated = correlate(gold, -first)
        assert (-negated.value, -negated.high, -negated.low) == pytest.approx(found, abs=1e-9)
    # any increasing map
    assert spearman(gold, np.exp(first / 50)) == pytest.approx(spearman(gold, first), abs=1e-9)
    p = williams(gold, first, second)
    assert 0 <= p <= 1 and williams(gold, second, first) == pytest.approx(p, abs=1e-9)
    assert williams(gold, first, first) == 1 and williams(gold, first, 4 * first) == 1


def textbook(one: float, two: float, both: float, n: int) -> tuple[float, float]:
    """t and p of Steiger's T2 as it is printed, the determinant by numpy."""
    determinant = np.linalg.det([[1, one, two], [one, 1, both], [two, both, 1]])
    spread = 2 * (n - 1) / (n - 3) * determinant + (one + two) ** 2 / 4 * (1 - both) ** 3
    t = (one - two) * math.sqrt((n - 1) * (1 + both) / spread)
    return t, 2 * stats.t.sf(abs(t), n - 3)


def correlated(one: float, two: float, both: float, n: int) -> np.ndarray:
    """Gold and two sides (3, n) that have exactly these correlations."""
    centred = np.random.default_rng(n).normal(size=(n, 3))
    orthogonal = np.linalg.qr(centred - centred.mean(axis=0))[0]
    return np.linalg.cholesky([[1, one, two], [one, 1, both], [two, both, 1]]) @ orthogonal.T


@pytest.mark.parametrize(
    ("correlations", "t", "p"),
    [
        # Silver, Hittner and May 2006, Applied Psychological Measurement 30, by their program
        ((0.3, 0.4, 0.5, 100), -1.0767, 0.2843),
        ((0.4, 0.5, 0.1, 103), -0.89, 0.37),  # Steiger 1980's case A, as R's psych prints it
    ],
)
def test_williams_published_examples(correlations, t, p):
    digits = len(str(p)) - 2
    assert tuple(round(float(value), digits) for value in textbook(*correlations)) == (t, p)
    assert round(williams(*correlated(*correlations)), digits) == p


def test_williams_rejects_as_often_as_it_says_and_finds_differences():
    """Without a difference a tenth of the samples has p below 0.1; with one, most."""
    rng = np.random.default_rng(6)
    same, other = [], []
    for _ in range(400):
        gold, shared, *noise = rng.normal(size=(4, 80))
        # the two correlate beyond what gold explains
        first, second = (gold + shared + 0.7 * own for own in noise)
        same.append(williams(gold, first, second) < 0.1)
        other.append(williams(gold, first, second + gold) < 0.1)
    assert 0.06 <= np.mean(same) <= 0.14 and np.mean(other) > 0.9


def test_williams_at_the_edges():
    """Opposite sides, where 0 / 0 tends to t = r sqrt((n-3)/(1-r^2)), and gold itself."""
    gold, first = sample(7, 10, 0.4)
    r = by_sums(gold, first)
    limit = 2 * stats.t.sf(abs(r) * math.sqrt(7 / (1 - r * r)), 7)
    assert williams(gold, first, -first) == pytest.approx(limit, rel=1e-6)
    assert textbook(r, -r + 1e-9, -1 + 1e-7, 10)[1] == pytest.approx(limit, rel=1e-3)
    assert williams(gold, gold, first) == pytest.approx(textbook(1, r, r, 10)[1], rel=1e-6)
    assert williams(gold, gold, -gold) < 1e-30
    assert williams(gold, gold, 3 * gold + 1) == 1


@pytest.mark.parametrize(
    ("gold", "values", "message"),
    [
        (
            [1, 2, 3],
            [1, 2, 4],
            "3 sentence pairs; a correlation with its interval takes at least 4",
        ),
        ([], [], "0 sentence pairs; "),
        ([2.5] * 5, range(5), "people's similarities are all 2.5; a constant"),
        (range(5), [0] * 5, "the values are all 0; a constant"),
        (range(5), [0.1, 0.1, 0.1, 0.1, 0.1 + 1e-17], "the values are all 0.1; a constant"),
        (range(5), 1 + 1e-15 * np.arange(5), "the values are all 1; a constant"),
        (
            range(5),
            [0, 1, math.nan, 2, math.nan],
            "the values: pair 3 has nan; a correlation takes finite numbers",
        ),
        ([0, 1, 2, 3, math.inf], range(5), "people's similarities: pair 5 has inf; a correlation"),
    ],
)
@pytest.mark.parametrize("correlate", [pearson, spearman])
def test_what_has_no_correlation(correlate, gold, values, message):
    with pytest.raises(UserError) as caught:
        correlate(np.array(gold), np.array(values))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_cosines_are_scipys(dtype):
    left, right = np.random.default_rng(1).normal(size=(2, 50, 33)).astype(dtype)
    expected = [
        1 - spatial.distance.cosine(*rows)
        for rows in zip(left.astype(float), right.astype(float), strict=True)
    ]
    found = cosines(left, right)
    assert found.dtype == np.float64 and found == pytest.approx(expected, abs=1e-12)
    assert np.array_equal(found, cosines(right, left))


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 40), st.integers(0, 1000), st.integers(-300, 300))
def test_equal_rows_give_exactly_one(width, seed, exponent):
    """Whatever the width, size and layout, and minus one for opposite rows."""
    rows = np.random.default_rng(seed).normal(size=(7, width)) * 10.0**exponent
    assert (cosines(rows, rows) == 1).all() and (cosines(rows, np.asfortranarray(rows)) == 1).all()
    assert (cosines(rows, -rows) == -1).all() and (
        cosines(rows, np.repeat(rows, 2, axis=0)[::2]) == 1
    ).all()
    assert (np.abs(cosines(rows, rows[::-1])) <= 1).all()
    assert cosines(rows, 1e-3 * rows[::-1]) == pytest.approx(cosines(rows, rows[::-1]), abs=1e-12)


def test_cosines_of_zero_and_unfinished_vectors():
    left = np.array([[0, 0], [0, 0], [1, 0], [math.nan, 1], [math.inf, 1], [1e-320, 0]])
    right = np.array([[0, 0], [3, 4], [0, 0], [1, 1], [1, 1], [1e300, 1e300]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cosines(left, right)
        assert cosines(np.zeros((0, 3)), np.zeros((0, 3))).shape == (0,)
    assert (
        found[:3].tolist() == [0, 0, 0]
        and np.isnan(found[3:5]).all()
        and found[5] == pytest.approx(math.sqrt(0.5))
    )
