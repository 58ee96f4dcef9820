"""Of trainings and their figures: pace, curves, labels that keep apart, what figures leave out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.report.conftest import collect_rescoring

from lmtools.report.drawing import LIGHT, spread
from lmtools.report.models import curve, step_time
from lmtools.report.rescoring_figures import legible
from lmtools.report.style import FIRST
from lmtools.report.write import make_pictures


@pytest.fixture(scope="module")
def report(compared):
    return collect_rescoring(compared)


def test_pace_is_over_the_training_lines():
    lines = [
        {"step": 100, "seconds": 7.0, "train_loss": 5.0},
        {"step": 200, "valid_loss": 4.0, "seconds": 99.0},
        {"step": 300, "seconds": 11.0, "train_loss": 4.0},
        {"step": 350, "valid_loss": 4.0},
    ]
    assert step_time(lines) == pytest.approx(20.0)
    assert step_time(lines[:2]) is None
    assert step_time([]) is None


def test_figures_of_lines_leave_out_what_they_cannot_show(report):
    every = {picture.name: picture for picture in make_pictures(report)}
    shown = {line.get_label() for line in every["length-test"].draw(LIGHT).axes[0].get_lines()}
    assert {"first pass", "oracle"} < shown and len(shown) == 6
    assert " are shown; the tables have all." in every["length-test"].caption
    many = {FIRST: 9.0, "a": 3.0, "b": 1.0, "c": 2.0}
    assert legible(many, many, 4) == (list(many), "")
    assert legible(many, many, 3)[0] == [FIRST, "b", "c"]


def test_curves_are_over_time_in_training_steps():
    lines = [
        {"step": 10, "seconds": 2.0, "train_loss": 5.0},
        {"step": 15, "valid_loss": np.log(90)},
        {"step": 20, "seconds": 6.0, "train_loss": 4.0},
        {"step": 20, "valid_loss": np.log(70)},
    ]
    assert np.allclose(curve(lines), [(4, 90), (6, 70)])
    assert curve(lines[:1]).shape == curve(lines[1:2]).shape == (0, 2)


@given(st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=15), st.floats(0.01, 0.2))
@settings(max_examples=50, deadline=None)
def test_labels_never_overlap_and_keep_their_order(places, gap):
    found = np.array(spread(places, gap))
    order = np.argsort(places, kind="stable")
    room = min(gap, 1 / max(len(places) - 1, 1))
    assert (np.diff(found[order]) >= room - 1e-9).all()
    assert found.min() >= -1e-9
    assert found.max() <= 1 + 1e-9


@pytest.mark.parametrize(
    ("places", "found"),
    [
        ([0.3, 0.9, 0.6], [0.3, 0.9, 0.6]),  # room enough
        ([0.5, 0.5], [0.45, 0.55]),
        ([0.5, 0.52, 0.9], [0.46, 0.56, 0.9]),
        ([0.0, 0.0, 0.0], [0.0, 0.1, 0.2]),
        ([1.0, 1.0], [0.9, 1.0]),
    ],
)
def test_labels_stay_as_near_as_can_be(places, found):
    assert spread(places, 0.1) == pytest.approx(found)
