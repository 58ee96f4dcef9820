"""Figures: what they are of, the same bytes each time, readable axes, one colour a system."""

import json

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from unit.report.conftest import collect_lms, collect_rescoring, lay_out, pictured
from unit.report.lm.toys import STYLE
from unit.report.test_golden import both, means

from lmtools.report.drawing import DARK, LIGHT
from lmtools.report.rescoring_figures import (
    draw_systems,
    find_points,
    frame,
    held,
    ppl_pictures,
    scale_by,
    validation,
)
from lmtools.report.style import Names, load_style
from lmtools.report.write import make_pictures


@pytest.fixture(scope="module")
def report(exp):
    return collect_rescoring(exp)


@pytest.fixture(scope="module")
def drawn(report):
    return {picture.name: picture for picture in make_pictures(report)}


NAMES = ("systems-test", "depth-test", "length-test", "scale", "learning")


@pytest.mark.parametrize("name", NAMES)
def test_same_bytes_again_and_other_paper_in_the_dark(drawn, name):
    light = drawn[name].png(LIGHT)
    assert light.startswith(b"\x89PNG")
    # a user's own settings must not leak in
    with matplotlib.rc_context({"axes.linewidth": 5, "xtick.labelsize": 20}):
        assert drawn[name].png(LIGHT) == light
    assert drawn[name].png(DARK) != light


@pytest.mark.parametrize("name", NAMES)
def test_axes_are_labelled(drawn, name):
    axes = drawn[name].draw(LIGHT).axes
    assert all(one.get_xlabel() for one in axes)
    assert axes[0].get_ylabel() or axes[0].get_yticklabels()[0].get_text() == "first pass"
    assert drawn[name].caption
    assert drawn[name].alt


def test_a_system_has_one_colour_everywhere(drawn):
    colors = {}
    for name in ("length-test", "learning"):
        for axes in drawn[name].draw(LIGHT).axes:
            for line in axes.get_lines():
                if not line.get_label().startswith("_"):
                    colors.setdefault(line.get_label(), set()).add(line.get_color())
    assert set(colors) >= {"T-TA", "uniLM (causal)", "biLM (masked)", "oracle", "first pass"}
    assert all(len(found) == 1 for found in colors.values())
    assert len({found.pop() for found in colors.values()}) == len(colors)


def test_looks_differ_without_colour():
    alone = [name for name in load_style().order if name not in ("*", "words", "tfidf")]
    styles = Names().looks([*alone, "mine", "yours"])
    assert len({look.marker for look in styles.values()}) == len(styles)


def test_lines_are_the_data(drawn, report):
    figure = drawn["length-test"].draw(LIGHT)
    lines = {line.get_label(): line.get_ydata() for line in figure.axes[0].get_lines()}
    expected = [value for value in report.lists.sets[1].by_length("causal") if value is not None]
    assert len(lines) <= 6 and np.allclose(lines["uniLM (causal)"], expected)


def test_scale_marks_choice_and_flat_region(drawn, report):
    axes = drawn["scale"].draw(LIGHT).axes[0]
    marks = {
        line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")
    }
    assert list(marks) == ["n-gram", "uniLM (causal)", "biLM (masked)", "T-TA"]
    weights = report.lists.systems["tta"].weights
    assert marks["T-TA"].get_xdata() == [weights.features["tta"]]
    assert marks["T-TA"].get_ydata() == pytest.approx([weights.dev.score])
    low, high = weights.search["curves"]["tta"]["flat"]
    bars = [
        line
        for line in axes.get_lines()
        if line.get_marker() == "|" and line.get_color() == marks["T-TA"].get_color()
    ]
    assert [list(bar.get_xdata()) for bar in bars] == [[low, high]]
    bottom, top = axes.get_ylim()
    assert bottom < min(mark.get_ydata()[0] for mark in marks.values())
    assert top > weights.dev.first_pass


def test_scales_of_weights_without_the_first_pass_are_parts_of_the_totals():
    curve = {"chosen": 2.0, "flat": [1.0, 3.0], "points": [[0, 20.0], [2.0, 10.0]], "part": 0.5}
    assert scale_by(curve, curve["part"]) == {
        "chosen": 1.0, "flat": [0.5, 1.5], "points": [[0, 20.0], [1.0, 10.0]],
    }  # fmt: skip


@pytest.mark.parametrize(("at", "value"), [(-1, 5), (0, 5), (0.9, 5), (1, 4), (2.5, 3), (9, 3)])
def test_a_score_holds_up_to_the_next_point(at, value):
    assert held(np.array([0.0, 1.0, 2.0]), np.array([5.0, 4.0, 3.0]), at) == value


def test_validation_is_placed_by_tokens():
    lines = [
        {"step": 10, "tokens": 100, "train_loss": 5.0},
        {"step": 15, "valid_loss": 4.5},
        {"step": 20, "tokens": 300, "train_loss": 4.0},
        {"step": 20, "valid_loss": 4.1},
    ]
    assert validation(lines) == [(200, 4.5), (300, 4.1)]


@pytest.mark.parametrize(("other", "scale"), [(4.0, "linear"), (4000.0, "log")])
def test_scales_of_other_orders_are_all_visible(other, scale):
    def curve(chosen):
        return {
            "chosen": chosen,
            "flat": [0.9 * chosen, 1.1 * chosen],
            "points": [[0, 20.0], [chosen, 10.0], [2 * chosen, 20.0]],
        }

    axes = Figure().subplots()
    frame(axes, {"tta": curve(2.0), "mine": curve(other)}, 12.0)
    low, high = axes.get_xlim()
    assert axes.get_xscale() == scale
    assert low <= 2 < other <= high


def test_a_dollar_in_a_name_is_no_formula(fresh):
    (fresh / "rescore/tta").rename(fresh / "rescore/$\\frac{$")
    report = collect_rescoring(fresh)
    assert all(picture.png(LIGHT) for picture in make_pictures(report))


@pytest.fixture(scope="module")
def of_means(tmp_path_factory):
    return collect_rescoring(means(tmp_path_factory.mktemp("egs") / "made-up"))


def test_marks_of_means_are_hollow(of_means):
    names = ("tta", "tta-mean")
    axes = draw_systems(of_means, of_means.lists.sets[1], names, LIGHT).axes[0]
    tta, mean = [line for line in axes.get_lines() if line.get_marker() == "*"]
    assert tta.get_color() == mean.get_color() == tta.get_markerfacecolor()
    assert mean.get_markerfacecolor() == LIGHT.paper
    picture = pictured(of_means, "scale")
    scales = {
        line.get_label(): line.get_xdata() for line in picture.draw(LIGHT).axes[0].get_lines()
    }
    assert scales["T-TA, mean over tokens"] == [
        of_means.lists.systems["tta-mean"].weights.features["tta/token"]
    ]


def test_points_of_perplexities(tmp_path):
    """A panel for each kind of perplexity, a point for each language model that rescores alone."""
    home = both(tmp_path / "egs/gbw")
    report = collect_lms(home, style=STYLE)
    (measured,) = report.lists.judged
    panels = find_points(report, measured)
    assert {kind: list(points) for kind, points in panels.items()} == {
        "perplexity": ["ngram", "causal"],
        "two-way perplexity": ["tta"],
        "pseudo-perplexity": ["masked"],
    }
    for lm, (ppl, row) in (item for points in panels.values() for item in points.items()):
        assert ppl == json.loads((home / f"ppl/{lm}/test.json").read_text())["word_ppl"]
        assert row.low <= row.value == measured.results[lm].score <= row.high
    (picture,) = ppl_pictures(report)
    made, texts = lay_out(picture)
    assert picture.name == "ppl-test" and len(made.axes) == 3
    for kind, axes in zip(panels, made.axes, strict=True):
        assert kind in axes.get_xlabel() and len(axes.texts) == len(panels[kind])
    assert texts
