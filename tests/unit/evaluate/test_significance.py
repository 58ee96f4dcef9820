import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lmtools.evaluate.corpus import evaluate
from lmtools.evaluate.edits import align
from lmtools.evaluate.metrics import METRICS
from lmtools.evaluate.significance import (
    compare_groups,
    confidence,
    flip_signs,
    holm,
    interval,
    matched_pairs,
    paired_bootstrap,
    resample,
    segment_errors,
    sign_test,
    slots,
    z_test,
)

# (reference, first system, second system, errors of both in each segment), counted by hand
SEGMENTS = [
    # two errors, four right words apart
    ("a b c d e f g h i j", "a x c d e f y h i j", "a b c d e f g h i j", [(1, 0), (1, 0)]),
    ("k l m n o p", "k l m n o p", "k l n o p", [(0, 1)]),
    # only one right word between the deletion and the insertions
    ("q r s t", "q r t", "q r s t u v", [(1, 2)]),
    ("a b", "", "a b", [(2, 0)]),
    ("a b c d", "x b c d", "a b c y", [(1, 0), (0, 1)]),  # two right words bound a segment ...
    ("a b c", "x b c", "a b y", [(1, 1)]),  # ... one does not
    ("a b c", "x b c", "a b", [(1, 1)]),
    ("", "u", "", [(1, 0)]),
    ("a b", "a b", "a b", []),
]


@pytest.mark.parametrize(("ref", "first", "second", "expected"), SEGMENTS)
def test_segments(ref, first, second, expected):
    found = segment_errors(
        *(slots(align(ref.split(), hyp.split()).steps) for hyp in (first, second))
    )
    assert [tuple(row) for row in found.tolist()] == expected


def test_matched_pairs_by_hand():
    """Differences 1, 1, -1, -1, 2: mean 2/5, variance 7.2/4, z = 0.4 sqrt(5) / sqrt(1.8) = 2/3."""
    refs, first, second, _ = zip(*SEGMENTS[:4], strict=True)
    one, two = (
        [align(ref.split(), hyp.split()) for ref, hyp in zip(refs, hyps, strict=True)]
        for hyps in (first, second)
    )
    result = matched_pairs(one, two)
    assert (result.segments, result.mean, result.deviation) == pytest.approx((5, 0.4, 1.8**0.5))
    assert result.z == pytest.approx(2 / 3)
    assert result.p == pytest.approx(2 * stats.norm.sf(2 / 3))
    assert matched_pairs(two, one).z == -result.z


words = st.lists(st.sampled_from("abcdefgh"), max_size=9)


@settings(max_examples=80, deadline=None)
@given(words, words, words)
def test_segments_hold_all_errors(ref, first, second):
    places = [slots(align(ref, hyp).steps) for hyp in (first, second)]
    assert all(len(place) == 2 * len(ref) + 1 for place in places)
    segments = segment_errors(*places)
    assert segments.sum(0).tolist() == [int(place.sum()) for place in places]
    assert (segments.sum(1) > 0).all()


@pytest.mark.parametrize(
    ("segments", "better", "worse", "p"),
    [
        (np.zeros((0, 2), int), 0, 0, 1),
        (np.array([[3, 1]]), 0, 1, 1),
        (np.array([[0, 1]] * 10), 10, 0, 2**-9),
        (np.array([[1, 0]] * 5), 0, 5, 2**-4),
        (np.array([[2, 2]] * 5), 0, 0, 1),
        (np.array([[0, 1]] * 3000), 3000, 0, 0),  # below what a float holds
    ],
)
def test_differences_that_do_not_vary_are_tested_by_sign(segments, better, worse, p):
    result = z_test(segments)
    assert result.z is None
    assert (result.better, result.worse, result.p, result.sign_p) == (better, worse, p, p)


def test_one_segment_of_many_that_differs():
    """Mean d / n and variance d^2 / n, so that z is 1 whatever d and n are."""
    for size, count in ((1, 2), (3, 10), (2, 500)):
        result = z_test(np.array([[size, 0]] + [[1, 1]] * (count - 1)))
        assert result.z == pytest.approx(1) and result.sign_p == 1


@given(st.integers(0, 300), st.integers(0, 300))
def test_the_sign_test_is_exact(better, worse):
    expected = stats.binomtest(better, better + worse).pvalue if better + worse else 1
    assert sign_test(better, worse) == pytest.approx(expected, rel=1e-9)


def systems(metric, seed=0, utterances=40):
    rng = np.random.default_rng(seed)
    refs = {
        f"u{i}": " ".join(rng.choice(list("abcdefgh"), rng.integers(1, 12)))
        for i in range(utterances)
    }
    noisy = [
        {
            utt: " ".join(w if rng.random() > rate else "z" for w in ref.split())
            for utt, ref in refs.items()
        }
        for rate in (0.2, 0.4)
    ]
    return [evaluate(refs, hyps, metric).statistics for hyps in noisy]


@pytest.mark.parametrize("metric", METRICS)
def test_bootstrap_is_deterministic_and_sees_a_clear_difference(metric):
    first, second = systems(metric)
    result = paired_bootstrap(first, second, metric, seed=3, resamples=500)
    assert result == paired_bootstrap(first, second, metric, seed=3, resamples=500)
    assert result != paired_bootstrap(first, second, metric, seed=4, resamples=500)
    assert result.score == float(METRICS[metric].score(first.sum(0)))
    assert result.difference_interval[0] < result.difference < result.difference_interval[1]
    assert result.score_interval == confidence(first, metric, seed=3, resamples=500)
    assert result.improvement > 0.99 and result.p < 0.05
    swapped = paired_bootstrap(second, first, metric, seed=3, resamples=500)
    assert swapped.p == result.p
    assert swapped.improvement < 0.01
    assert swapped.difference == -result.difference


def test_equal_systems_do_not_differ():
    first, _ = systems("wer")
    result = paired_bootstrap(first, first, "wer", seed=1, resamples=300)
    assert (result.difference, result.improvement, result.p, result.difference_interval) == (
        0,
        0,
        1,
        None,
    )


def test_bootstrap_approaches_the_exact_distribution():
    """With three utterances all 27 equally likely resamples can be listed."""
    first = np.array([[2, 0, 0, 5], [0, 1, 0, 2], [0, 0, 0, 9]])
    second = np.array([[1, 0, 0, 5], [0, 2, 1, 2], [0, 0, 1, 9]])
    better = np.mean(
        [
            first[list(draw), :3].sum() < second[list(draw), :3].sum()
            for draw in itertools.product(range(3), repeat=3)
        ]
    )
    result = paired_bootstrap(first, second, "wer", seed=5, resamples=20_000)
    assert result.improvement == pytest.approx(better, abs=0.015)
    assert 0 < better < 1


def test_draws_without_words_have_no_rate():
    """Of two utterances one has no words: a quarter of the draws have none and do not count."""
    statistics = np.array([[1, 0, 0, 2], [0, 0, 3, 0]])
    low, high = confidence(statistics, "wer", seed=1, resamples=500)
    assert (low, high) == (50, 200)  # draws of both have 4 errors of 2 words
    assert confidence(statistics[1:], "wer", seed=1, resamples=50) is None
    assert interval(np.array([np.nan, 1.0, 1.0]), 3) is None
    assert interval(np.array([np.nan, 1.0, 1.0, 2.0]), 3)[0] == 1


@pytest.mark.parametrize(
    ("errors", "other", "ends", "p", "told"),
    [
        ([1], [0], None, None, "p = - (one utterance)"),
        ([0], [0], None, None, "p = - (one utterance)"),
        ([1] * 30, [1] * 30, None, 1, "p = 1"),
        ([1] * 4, [2] * 4, None, None, "p = - (all 4 utterances alike); exact sign test of 4"),
        ([0] * 6, [3, 1, 2, 2, 2, 1], (0, 4.87), 2**-5, "p = 0.031; exact sign test of 6"),
        ([0] * 30, [1] * 29 + [2], (0, 0.99), 2 / 10_001, "p = 0.0002"),
    ],
)
@pytest.mark.parametrize("metric", ["wer", "ter"])
def test_what_few_units_cannot_say(errors, other, ends, p, told, metric):
    """Units of ten words; of no errors in n words at most 1 - 0.05^(1/n) are wrong, one-sided."""
    one, two = (np.array([[x, 0, 0, 10] for x in side]).reshape(-1, 4) for side in (errors, other))
    if metric == "ter":
        one, two = one[:, [0, 3]], two[:, [0, 3]]
    result = paired_bootstrap(one, two, metric, seed=1)
    assert result.score_interval == confidence(one, metric, seed=1)
    assert result.score_interval == (ends and pytest.approx(ends, abs=0.005))
    assert result.p == (p and pytest.approx(p)) and result.describe().startswith(told)


def test_resamples_draw_whole_utterances(monkeypatch):
    sums = resample(np.eye(6), seed=1, resamples=50)
    assert sums.shape == (50, 6)
    assert (sums.sum(1) == 6).all() and (sums == sums.astype(int)).all() and sums.std() > 0
    monkeypatch.setattr("lmtools.evaluate.significance.BLOCK", 60)
    assert resample(np.eye(6), seed=1, resamples=50).shape == (50, 6)


def test_sign_flips_of_groups_by_hand():
    """Differences 3, 1, -1: of eight exchanges six sums are as far from zero as 3."""
    first, second = (np.array([[x, 0, 0, 10] for x in errors]) for errors in ((4, 2, 1), (1, 1, 2)))
    assert flip_signs(first, second, "wer", seed=1) == 6 / 8
    # the second group in two utterances
    first, second = (
        np.insert(statistics, 3, [0, 0, 0, 5], axis=0) for statistics in (first, second)
    )
    first[1], second[1] = first[1] - [0, 0, 0, 5], second[1] - [0, 0, 0, 5]
    result = compare_groups(first, second, ["ann", "bob", "cy", "bob"], "wer", seed=1)
    assert (result.groups, result.better, result.worse) == (3, 1, 2)
    assert result.flips_p == 6 / 8
    assert flip_signs(first, first, "wer", seed=1) == 1


def test_drawn_sign_flips_come_near_the_exact_p():
    """Of 20 groups the first system has an error less in 16, and one more in 4."""
    first = np.array([[1, 0, 0, 10]] * 20)
    second = first + np.array([[1, 0, 0, 0]] * 16 + [[-1, 0, 0, 0]] * 4)
    assert flip_signs(first, second, "wer", seed=1) == pytest.approx(sign_test(16, 4), abs=0.004)


def test_one_group_is_no_evidence():
    first = np.array([[1, 0, 0, 10], [2, 0, 0, 9], [0, 0, 0, 5]])
    result = compare_groups(first, first * [2, 0, 0, 1], "aaa", "wer", seed=1)
    assert (result.bootstrap_p, result.flips_p) == (None, None)
    assert result.describe("talk") == "bootstrap p = - (one talk)"


def test_no_p_is_below_the_sign_tests():
    segments = np.array([[0, 1]] * 23 + [[0, 2]])
    assert z_test(segments).p == 2 * 0.5**24 and z_test(segments).z == pytest.approx(-25)


def test_two_groups_are_little_evidence():
    """Two groups cannot be significant by sign flips, however many utterances they have."""
    first, second = (np.array([[x, 0, 0, 100] for x in errors]) for errors in ((10, 12), (50, 60)))
    assert compare_groups(first, second, "ab", "wer", seed=1).flips_p == 0.5


def test_holm_by_hand():
    """Of four, 0.01 counts four times, 0.02 three times, and 0.03, which comes to 0.06 twice as
    well, once more; 0.9 stays; equal ones are raised alike.
    """
    assert holm([0.03, 0.01, 0.9, 0.02]) == pytest.approx([0.06, 0.04, 0.9, 0.06])
    assert holm([0.4, 0.3, 0.02]) == pytest.approx([0.6, 0.6, 0.06])
    assert holm([0.5, 0.5, 0.5]) == [1, 1, 1] and holm([0.04]) == [0.04] and holm([]) == []
