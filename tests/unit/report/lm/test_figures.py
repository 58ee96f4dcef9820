"""Figures of language models by themselves: what they are of, labels that do not overlap, runs that
went astray.
"""

import json
import math

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.report.conftest import check_layout, collect_lms
from unit.report.lm.toys import CONTEXT, GATES, PIECES, SPEEDS, STYLE, lm_experiment

from lmtools.report.figures.lms import find_looks, progress, split
from lmtools.report.page.drawing import DARK, LIGHT
from lmtools.report.parts.grids import Grid
from lmtools.report.write import make_pictures

NAMES = (
    "work", "grid-gates", "grid-output", "grid-context", "grid-pieces", "learning-ppl",
    "learning-two-way-ppl", "speed",
)  # fmt: skip


@pytest.fixture(scope="module")
def lms(tmp_path_factory):
    return lm_experiment(
        tmp_path_factory.mktemp("egs") / "gbw", grids=("gates", "output", "context", "pieces")
    )


@pytest.fixture(scope="module")
def report(lms):
    return collect_lms(lms, style=STYLE)


@pytest.fixture(scope="module")
def drawn(report):
    return {picture.name: picture for picture in make_pictures(report)}


def lines(axes):
    """The points of each line of more than one, in the order of drawing."""
    return [
        np.column_stack(line.get_data()) for line in axes.get_lines() if len(line.get_xdata()) > 2
    ]


def test_names(drawn):
    assert tuple(drawn) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_nothing_overlaps_or_leaves_the_paper(drawn, name):
    check_layout(drawn[name])


@pytest.mark.parametrize("name", NAMES)
def test_axes_captions_and_alternatives(drawn, name):
    axes = drawn[name].draw(LIGHT).axes
    assert all(one.get_xlabel() for one in axes)
    assert axes[0].get_ylabel() or axes[0].get_yticklabels()[0].get_text() == "KN-5"
    assert drawn[name].caption.endswith(".")
    assert drawn[name].alt.endswith(".")


def test_same_bytes_again_and_other_paper_in_the_dark(drawn):
    light = drawn["work"].png(LIGHT)
    with matplotlib.rc_context({"axes.linewidth": 5}):
        assert drawn["work"].png(LIGHT) == light
    assert drawn["work"].png(DARK) != light


def test_curves_are_the_validations(drawn, report, lms):
    left, right = drawn["grid-gates"].draw(LIGHT).axes
    for curves, key in ((lines(left), "step"), (lines(right), "seconds")):
        assert len(curves) == len(GATES)
        for label, points in zip(GATES, curves, strict=True):
            every = [
                json.loads(line)
                for line in (
                    (lms / f"lm/gates-{label.lower()}/metrics.jsonl").read_text().splitlines()
                )
            ]
            trained = {line["step"]: line for line in every if "seconds" in line}
            expected = [
                (trained[line["step"]][key], math.exp(line["valid_loss"]))
                for line in every
                if "valid_loss" in line
            ]
            unit = points[-1, 0] / expected[-1][0]
            assert unit == pytest.approx(1 if key == "step" else 1 / 60)
            assert np.allclose(points, np.array(expected) * (unit, 1))
    assert [text.get_text().split()[0] for text in right.texts] == list(GATES)


def test_lines_are_the_perplexities_by_value(drawn):
    (points,) = lines(drawn["grid-context"].draw(LIGHT).axes[0])
    assert np.allclose(points, list(CONTEXT.items()))
    axes = drawn["grid-pieces"].draw(LIGHT).axes[0]
    bpe, unigram = lines(axes)
    assert np.allclose(bpe, [(size, PIECES[f"bpe-{size}"]) for size in (500, 1000, 2000)])
    assert np.allclose(unigram, [(size, PIECES[f"unigram-{size}"]) for size in (500, 1000, 2000)])
    (level,) = [
        line
        for line in axes.get_lines()
        if line.get_linestyle() == "--" and len(set(line.get_ydata())) == 1
    ]
    assert level.get_ydata()[0] == PIECES["char"]
    assert {text.get_text().split()[0] for text in axes.texts} == {"bpe", "unigram", "char"}


def test_work_is_what_the_bench_counted(drawn):
    axes = drawn["work"].draw(LIGHT).axes[0]
    found = {text.get_text().rpartition("  ")[0]: text.xy for text in axes.texts}
    assert found.keys() == {
        "LSTM",
        "GCNN",
        "GCNN full",
        "LSTM full",
        "GCNN adaptive",
        "LSTM adaptive",
    }
    assert found["LSTM full"] == (pytest.approx(SPEEDS["output-lstm-full"][0] / 1e6), 139.5)


def test_bars_end_at_the_medians(drawn):
    for axes, column in zip(drawn["speed"].draw(LIGHT).axes, (1, 2), strict=True):
        ends = [bar.get_x() + bar.get_width() for bar in axes.patches]
        assert np.allclose(ends, [row[column] for row in SPEEDS.values()])
        assert axes.get_xscale() == "log"


def test_a_diverged_run_is_left_out_and_said(tmp_path):
    exp = lm_experiment(tmp_path / "gbw", grids=("training",))
    path = exp / "lm/training-neither/metrics.jsonl"
    path.write_text(
        '{"step": 1, "epoch": 1, "tokens": 9, "seconds": 1.0, "train_loss": 9.0}\n{"step": 1,'
        ' "valid_loss": 900.0}\n'
    )
    picture = next(
        one for one in make_pictures(collect_lms(exp, style=STYLE)) if one.name == "grid-training"
    )
    assert "not shown: neither." in picture.caption
    assert len(lines(picture.draw(LIGHT).axes[0])) == 3


def test_progress_takes_time_from_the_training(report):
    model = report.models["gcnn"]
    points = progress(model)
    assert points.shape == (10, 3)
    seconds = {line["step"]: line["seconds"] for line in model.lines if "seconds" in line}
    assert np.allclose(points[:, 1], [seconds[step] for step in points[:, 0]])


@given(
    st.lists(st.integers(1, 5000), min_size=1, max_size=5, unique=True),
    st.sampled_from(["bpe-{}", "{}", "k = {}", "v2-{}"]),
)
@settings(max_examples=30, deadline=None)
def test_series_are_labels_without_their_value(sizes, form):
    labels = [form.format(size) for size in sizes]
    grid = Grid("g", "G", "line", "x", {}, dict(zip(labels, map(float, sizes), strict=True)))
    series, level = split(grid, {**dict.fromkeys(labels, 7.0), "char": 8.0})
    assert series == {form.replace("{}", "").strip(" -="): [(size, 7.0) for size in sorted(sizes)]}
    assert level == {"char": 8.0}


def test_looks_tell_runs_apart_and_keep_families(report):
    grids = {grid.name: find_looks(grid, STYLE.runs) for grid in report.grids}
    for styles in grids.values():
        assert len({look.light for look in styles.values()}) == len(styles)
    models = report.models
    apart = find_looks(
        Grid("", "", "curves", "", {name: models[name] for name in ("lstm", "gcnn")}, {}),
        STYLE.runs,
    )
    assert apart["gcnn"] == models["gates-glu"].shown.look != apart["lstm"]
