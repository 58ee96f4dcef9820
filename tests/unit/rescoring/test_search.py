from dataclasses import replace

import numpy as np
import pytest

from lmtools.evaluate.metrics import METRICS
from lmtools.rescoring.search import SearchSpace, bounds, descend, descents, line_search, search

WER = METRICS["wer"].score  # test_optimum.py has every metric, beside brute force


def search_space(weights, utterances=60, depth=12, seed=0, nonnegative=False):
    """Columns that all say something of the errors, with noise; statistics of WER."""
    rng = np.random.default_rng(seed)
    errors = rng.integers(0, 6, size=(utterances, depth))
    columns = rng.normal(size=(weights + 1, utterances, depth)) * 2 - errors * rng.uniform(
        0.2, 1, size=(weights + 1, 1, 1)
    )
    valid = np.arange(depth) < rng.integers(1, depth + 1, size=utterances)[:, None]
    statistics = np.stack([errors, 0 * errors, 0 * errors, 0 * errors + 10], axis=-1)
    return SearchSpace(columns, valid, statistics, WER, np.full(weights, nonnegative))


def test_several_starts_are_better_than_one():
    cases = [search_space(4, utterances=20, seed=seed) for seed in range(6)]
    one = [case.at(descend(case, np.eye(5)[0], np.random.default_rng(0))) for case in cases]
    several = [case.at(search(case, 0)) for case in cases]
    assert sum(several) < sum(one)
    assert all(better <= worse for better, worse in zip(several, one, strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_weights_that_help_only_together_are_found(seed):
    rng = np.random.default_rng(0)
    errors = rng.integers(0, 6, size=(60, 12))
    useless, noise = rng.normal(size=(2, 60, 12))
    columns = np.stack([useless, -errors + 5 * noise, -errors - 5 * noise])
    statistics = np.stack([errors, 0 * errors, 0 * errors, 0 * errors + 10], axis=-1)
    valid, free = np.ones((60, 12), dtype=bool), np.zeros(2, dtype=bool)
    case = SearchSpace(columns, valid, statistics, WER, free)
    found = descend(case, np.eye(3)[0], np.random.default_rng(seed))
    assert case.at(found) == WER(statistics.min(1).sum(0))


def test_a_line_search_does_not_depend_on_where_on_the_line_it_begins():
    case, direction = search_space(2, seed=4), np.array([0.0, 1.0, -0.7])
    here = line_search(case, np.array([1.0, 0.2, 0.1]), direction)
    there = line_search(case, np.array([1.0, 0.2, 0.1]) + 4 * direction, direction)
    np.testing.assert_allclose(here, there, atol=1e-9)


def test_the_same_seed_gives_the_same_weights():
    case = search_space(4)
    np.testing.assert_array_equal(search(case, 7), search(case, 7))


def test_weights_that_may_not_be_negative_are_not():
    case = search_space(2, nonnegative=True)
    misleading = replace(case, columns=case.columns * np.array([1, -1, 1])[:, None, None])
    assert (search(misleading, 0) >= 0).all()
    free = replace(misleading, nonnegative=np.zeros(2, dtype=bool))
    assert search(free, 0)[1] < 0  # else the bound was not needed


def test_no_weights_leave_the_first_column_alone():
    assert search(search_space(0), 0).tolist() == [1.0]


def test_a_line_search_never_loses():
    case, rng = search_space(3, seed=5), np.random.default_rng(5)
    weights = np.array([1.0, 0.1, -0.2, 0.3])
    for _ in range(30):
        new = line_search(case, weights, np.append(0, rng.normal(size=3)))
        assert case.at(new) <= case.at(weights)
        weights = new


def test_bounds():
    weights, direction = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 1.0, -1.0, 5.0])
    assert bounds(weights, direction, np.array([True, True, False])) == (-2, 3)
    assert bounds(weights, direction, np.array([False, False, False])) == (-np.inf, np.inf)


def without(case, place):
    """The space without one of its weights."""
    columns, bounded = np.delete(case.columns, place + 1, 0), np.delete(case.nonnegative, place)
    return replace(case, columns=columns, nonnegative=bounded)


@pytest.mark.parametrize("seed", [0, 6])
def test_the_best_is_never_worse_than_without_one_weight(seed):
    """Of random starts alone the end was worse than without one weight (seed 6: 6.4 against 6.0),
    or than from there on (seed 0).
    """
    case = search_space(4, utterances=25, depth=15, seed=seed)
    found = case.at(search(case, 0))
    parts = [without(case, place) for place in range(4)]
    assert all(found <= part.at(search(part, 0)) for part in parts)
    assert found < min(map(case.at, descents(case, 0)))


def test_an_equal_end_changes_no_weights():
    case = search_space(4, utterances=25, depth=15, seed=2)
    assert search(case, 0).tolist() == min(descents(case, 0), key=case.at).tolist()
