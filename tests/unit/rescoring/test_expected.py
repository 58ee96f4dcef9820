from dataclasses import replace

import numpy as np
import pytest

from lmtools.evaluate.metrics import METRICS
from lmtools.rescoring.expected import expected_loss, minimise_expected, sharpen
from lmtools.rescoring.features import gather
from lmtools.rescoring.search import SearchSpace
from lmtools.rescoring.tuning import loss_of, tune
from lmtools.rescoring.tuning_options import TuningOptions
from lmtools.types import NBest


def space_of(metric, weights=2, lists=30, depth=8, seed=0):
    """Columns that know a little of how good each hypothesis is; the last lists are short."""
    rng = np.random.default_rng(seed)
    if metric == "wer":
        length = rng.integers(5, 20, size=(lists, 1, 1)).repeat(depth, 1)
        statistics = np.concatenate([rng.integers(0, 3, size=(lists, depth, 3)), length], axis=2)
    else:
        total = 20 - np.arange(4)
        match = total - np.sort(rng.integers(4, 15, size=(lists, depth, 4)), axis=2)
        lengths = rng.integers(18, 23, size=(lists, depth, 2))
        statistics = np.concatenate([lengths, match, np.broadcast_to(total, match.shape)], axis=2)
    gains = METRICS[metric].gain(statistics)
    columns = rng.normal(size=(1 + weights, lists, depth)) + gains / gains.std()
    valid = np.arange(depth) < np.where(np.arange(lists) < lists - 3, depth, 2)[:, None]
    bounds = np.zeros(weights, dtype=bool)
    return SearchSpace(np.where(valid, columns, 0), valid, statistics, loss_of(metric), bounds)


@pytest.mark.parametrize("metric", ["wer", "bleu"])
def test_the_gradient_is_that_of_the_expected_loss(metric):
    case, weights, step = space_of(metric), np.array([0.7, 0.3, -0.2]), 1e-5
    _, gradient = expected_loss(weights, case)
    up, down = (
        np.array([expected_loss(weights + way * axis, case)[0] for axis in np.eye(3)])
        for way in (step, -step)
    )
    assert gradient == pytest.approx((up - down) / (2 * step), rel=1e-4, abs=1e-6)


def test_sharp_weights_expect_what_they_choose():
    case, weights = space_of("wer"), np.array([1.0, 0.4, 0.2])
    assert expected_loss(1e6 * weights, case)[0] == pytest.approx(case.at(weights))
    uniform = [case.statistics[u, case.valid[u]].mean(0) for u in range(len(case.valid))]
    assert expected_loss(0 * weights, case)[0] == pytest.approx(case.loss(np.sum(uniform, axis=0)))


@pytest.mark.parametrize("metric", ["wer", "bleu"])
def test_what_is_found_is_better_than_the_first_pass_and_the_same_each_time(metric):
    case = space_of(metric)
    found, loss = minimise_expected(case)
    again, _ = minimise_expected(case)
    assert found.tolist() == again.tolist() and found[0] == 1 and (found[1:] > 0).all()
    assert case.at(found) < case.at(np.array([1.0, 0, 0]))
    assert loss < expected_loss(np.array([1.0, 0, 0]), case)[0]


def with_noise(case, rng):
    """The space with one column more, which says nothing."""
    columns = np.concatenate([case.columns, rng.normal(size=(1, *case.valid.shape))])
    return replace(case, columns=columns, nonnegative=np.zeros(len(columns) - 1, dtype=bool))


def test_a_column_that_says_nothing_gets_next_to_no_weight():
    case, rng = space_of("wer", weights=1, lists=300), np.random.default_rng(3)
    found, _ = minimise_expected(with_noise(case, rng))
    assert abs(found[2]) < 0.15 * found[1]


def test_one_loop_does_not_decide_the_weights():
    """The LM prefers right words in nine lists of ten, and in one a loop of a hundred words."""
    nbests, column = [], []
    for number in range(10):
        texts, ref = ["a cap sat", "a cat sat"], "a cat sat"
        if number == 0:
            texts, ref = ["the mat", " ".join(["poor"] * 100)], "a mat"
        nbests.append(NBest.of(f"u{number}", texts, ref, am=[0.0, -1.0]))
        column.append(np.array([-5.0, -1.0]))
    features = gather(nbests, {"lm": column}, "n", derived=())
    robust, exact = (
        tune(nbests, features, "n", TuningOptions(lms=("lm",), objective=objective))
        for objective in ("expected", "exact")
    )
    assert exact.features["lm"] < 0.25 < robust.features["lm"]
    assert robust.dev.score > robust.dev.first_pass  # by the loop alone
    assert robust.search["capped"]["wer"] < robust.search["capped"]["first_pass"]
    assert "capped" not in exact.search and exact.search["objective"] == "exact"


@pytest.mark.parametrize("metric", ["wer", "cer", "ter", "bleu", "chrf"])
def test_capped_statistics(metric):
    measure = METRICS[metric]
    statistics = measure.statistics("a b", ["a b", "a", "x y z " * 9, ""])
    capped = measure.cap(statistics)
    assert (capped[[0, 1, 3]] == statistics[[0, 1, 3]]).all()
    expected = 100 if measure.lower_is_better else measure.score(statistics[2])
    assert measure.score(capped[2]) == expected
    if measure.lower_is_better:
        assert measure.score(statistics[2]) > 100
        assert measure.score(measure.cap(measure.statistics("", ["x y"]))[0]) == 100


def test_weights_are_sharpened_where_one_sharpness_misleads():
    case = space_of("wer", weights=1, lists=400)
    misled = np.array([1.0, 20.0])
    found, sharpened = sharpen(case, misled, 0)
    assert sharpened and case.at(found) < 0.97 * case.at(misled)


def test_weights_stay_where_exact_searches_gain_by_chance():
    case, rng = space_of("wer", weights=0, lists=200), np.random.default_rng(5)
    found, sharpened = sharpen(with_noise(case, rng), np.array([1.0, 0.0]), 0)
    assert not sharpened and found.tolist() == [1, 0]
