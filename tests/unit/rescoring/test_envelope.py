import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.rescoring.search import Curve, choose, envelope, flat_region, sweep

INF = np.inf


def chosen_at(start, slope, valid, step):
    """What a rescorer chooses at one step: the plain definition."""
    return np.where(valid, start + step * slope, -INF).argmax(1)


@st.composite
def lists(draw):
    """Lists of small integer lines, so that equal lines and common crossings happen."""
    utterances, depth = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    start, slope = rng.integers(-4, 5, size=(2, utterances, depth)).astype(float)
    valid = np.arange(depth) < rng.integers(1, depth + 1, size=utterances)[:, None]
    return start, slope, valid, rng.integers(0, 9, size=(utterances, depth, 2))


@given(lists(), st.floats(-20, 20))
@settings(max_examples=200, deadline=None)
def test_the_curve_is_what_choosing_at_one_step_gives(case, step):
    start, slope, valid, statistics = case
    curve = sweep(start, slope, valid, statistics)
    assert curve.edges[0] == -INF and (np.diff(curve.edges) > 0).all()
    if np.abs(curve.edges - step).min() > 1e-6:  # on an edge two hypotheses are equally good
        places = chosen_at(start, slope, valid, step)
        expected = statistics[np.arange(len(places)), places].sum(0)
        np.testing.assert_array_equal(
            curve.totals[np.searchsorted(curve.edges, step) - 1], expected
        )


def test_equal_lines_go_to_the_earlier_hypothesis_and_lists_of_one_never_change():
    start = np.array([[1.0, 1.0, 0.0], [5.0, 0.0, 0.0]])
    slope = np.array([[0.0, 0.0, 1.0], [2.0, 9.0, 9.0]])
    utterance, step, hypothesis = envelope(
        start, slope, np.array([[True] * 3, [True, False, False]])
    )
    assert list(zip(utterance.tolist(), step.tolist(), hypothesis.tolist(), strict=True)) == [
        (0, -INF, 0),
        (1, -INF, 0),
        (0, 1.0, 2),
    ]


def curve_of(edges):
    return Curve(np.array([-INF, *edges]), np.zeros((len(edges) + 1, 1)))


@pytest.mark.parametrize(
    "edges, loss, low, high, middle",
    [
        ([1, 2], [5, 3, 5], -INF, INF, (1, 2)),
        ([1, 2, 3, 3.1], [5, 3, 5, 3, 5], -INF, INF, (1, 2)),  # the widest of two equals
        ([1, 2, 3], [5, 3, 3, 5], -INF, INF, (1, 3)),  # neighbours of equal loss are one
        ([1, 2, 3, 4], [5, 3, 2, 3, 5], -INF, INF, (2, 3)),  # the best counts before the widest
        ([-1, 0.5], [1, 3, 2], 0, INF, (0.5, INF)),  # what lies below the bound does not count
        ([-1, 0.5], [1, 3, 2], -2, INF, (-2, -1)),
        ([1, 2], [5, 4, 3], -INF, INF, (2, INF)),
        ([1, 2], [1, 4, 3], -INF, INF, (-INF, 1)),
        ([1, 2], [3, 3, 3], 0, INF, (0, INF)),
        ([1, 1 + 1e-12, 2], [5, 1, 3, 5], -INF, INF, (1, 2)),  # too narrow to be hit
    ],
)
def test_choose_takes_the_middle_by_angle(edges, loss, low, high, middle):
    along, away = 0.3, 2.0
    step = choose(curve_of(edges), np.array(loss), low, high, along, away)
    angles = [
        np.arctan2(end + along, away) if np.isfinite(end) else np.sign(end) * np.pi / 2
        for end in middle
    ]
    assert np.arctan2(step + along, away) == pytest.approx(sum(angles) / 2)
    assert middle[0] < step < middle[1]


@pytest.mark.parametrize("edges, low", [([], -INF), ([-2, -1], 0)])
def test_choose_stays_where_nothing_changes(edges, low):
    assert choose(curve_of(edges), np.arange(len(edges) + 1), low, INF, 0, 1) is None


@pytest.mark.parametrize(
    "at, tolerance, low, region",
    [
        (2.5, 0, -INF, (2, 3)),
        (2.5, 1, -INF, (2, 4)),
        (2.5, 2, -INF, (-INF, 5)),
        (2.5, 2, 0, (0, 5)),
        (9, 9, -INF, (-INF, INF)),
        (4.5, 0, -INF, (-INF, 5)),  # not the best itself: as good as itself
    ],
)
def test_flat_region(at, tolerance, low, region):
    loss = np.array([3.0, 3.0, 1.0, 2.0, 3.0, 9.0])
    assert flat_region(curve_of([1, 2, 3, 4, 5]), loss, at, tolerance, low) == region
