import itertools
from dataclasses import replace

import numpy as np
import pytest

from lmtools.evaluate import METRICS
from lmtools.rescoring.search import SearchSpace, bounds, descend, descents, line_search, search

WER, BLEU = METRICS["wer"].score, METRICS["bleu"].score


def search_space(weights, utterances=60, depth=12, seed=0, nonnegative=False, bleu=False):
    """Columns that all say something of the errors, with noise; statistics of WER or of BLEU."""
    rng = np.random.default_rng(seed)
    errors = rng.integers(0, 6, size=(utterances, depth))
    columns = rng.normal(size=(weights + 1, utterances, depth)) * 2 - errors * rng.uniform(
        0.2, 1, size=(weights + 1, 1, 1)
    )
    valid = np.arange(depth) < rng.integers(1, depth + 1, size=utterances)[:, None]
    words = np.full_like(errors, 10)
    statistics = np.stack([errors, 0 * errors, 0 * errors, words], axis=-1)
    if bleu:
        matches = [np.maximum(words - n - (n + 1) * errors, 0) for n in range(4)]
        statistics = np.stack(
            [words - errors % 2, words, *matches, *(words - n for n in range(4))], axis=-1
        ).astype(float)
    loss = (lambda totals: -BLEU(totals)) if bleu else WER
    return SearchSpace(columns, valid, statistics, loss, np.full(weights, nonnegative))


@pytest.mark.parametrize("bleu", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_one_weight_is_as_good_as_any_on_a_dense_grid(seed, bleu):
    case = search_space(1, seed=seed, bleu=bleu)
    angles = np.linspace(-np.pi / 2, np.pi / 2, 4001)[1:-1]
    grid = min(case.at(np.array([1.0, np.tan(angle)])) for angle in angles)
    assert case.at(search(case, 0)) <= grid + 1e-9


@pytest.mark.parametrize("bleu", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_several_weights_are_as_good_as_brute_force(seed, bleu):
    case = search_space(2, seed=seed, bleu=bleu)
    scales = np.tan(np.linspace(-1.45, 1.45, 41))
    grid = min(case.at(np.array([1.0, *pair])) for pair in itertools.product(scales, scales))
    assert case.at(search(case, 0)) <= grid + 1e-9


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
    case = SearchSpace(
        columns, np.ones((60, 12), dtype=bool), statistics, WER, np.array([False, False])
    )
    assert case.at(descend(case, np.eye(3)[0], np.random.default_rng(seed))) == WER(
        statistics.min(1).sum(0)
    )


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
    misleading = SearchSpace(
        case.columns * np.array([1, -1, 1])[:, None, None],
        case.valid,
        case.statistics,
        case.loss,
        case.nonnegative,
    )
    assert (search(misleading, 0) >= 0).all()
    free = SearchSpace(
        misleading.columns, case.valid, case.statistics, case.loss, np.array([False, False])
    )
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
    return replace(
        case,
        columns=np.delete(case.columns, place + 1, 0),
        nonnegative=np.delete(case.nonnegative, place),
    )


@pytest.mark.parametrize("seed", [0, 6])
def test_the_best_is_never_worse_than_without_one_weight(seed):
    """Of random starts alone the end was worse than without one weight (seed 6: 6.4 against 6.0),
    or than from there on (seed 0).
    """
    case = search_space(4, utterances=25, depth=15, seed=seed)
    found = case.at(search(case, 0))
    assert all(
        found <= part.at(search(part, 0)) for part in (without(case, place) for place in range(4))
    )
    assert found < min(map(case.at, descents(case, 0)))


def test_an_equal_end_changes_no_weights():
    case = search_space(4, utterances=25, depth=15, seed=2)
    assert search(case, 0).tolist() == min(descents(case, 0), key=case.at).tolist()
