"""Grids of runs and speeds: what egs/gbw/local/grid_tables.py adds to a report."""

import json
import math
import shutil
from pathlib import Path

import grid_tables
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.report.conftest import check_layout, rows_of
from unit.report.lm.toys import CONTEXT, GATES, STYLE, lm_experiment

from lmtools.base.errors import UserError
from lmtools.base.seal import write_json
from lmtools.report import write_report
from lmtools.report.drawing import LIGHT, Picture
from lmtools.report.style import Names

NAMES = ("work", "speed", "grid-gates", "grid-output", "grid-context", "grid-pieces")


@pytest.fixture(scope="module")
def lms(tmp_path_factory) -> Path:
    """A reported experiment, shared: tests must not change it."""
    home = tmp_path_factory.mktemp("egs") / "gbw"
    exp = lm_experiment(home, grids=("gates", "output", "context", "pieces"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Picture, "png", lambda picture, theme: b"")
        write_report(exp, style=STYLE)
    return exp


@pytest.fixture
def fresh(lms, tmp_path) -> Path:
    """The experiment again, to change."""
    return Path(shutil.copytree(lms, tmp_path / "gbw/exp"))


def read(exp: Path):
    """What grid_tables.py reads of a report of the experiment as it is now."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Picture, "png", lambda picture, theme: b"")
        write_report(exp, style=STYLE)
    return grid_tables.read_compared(exp, Names(STYLE))


def tables(exp: Path) -> dict[str, list[dict[str, str]]]:
    """The rows of each table, by title: cell by header."""
    compared = read(exp)
    every = [*grid_tables.bench_tables(compared), *grid_tables.grid_tables(compared)]
    return {table.title: rows_of(table) for table in every}


@pytest.fixture(scope="module")
def compared(lms):
    return grid_tables.read_compared(lms, Names(STYLE))


@pytest.fixture(scope="module")
def drawn(compared):
    pictures = [
        *grid_tables.work_pictures(compared),
        *grid_tables.speed_pictures(compared),
        *grid_tables.grid_pictures(compared),
    ]
    return {picture.name: picture for picture in pictures}


def lines(axes):
    """The points of each line of more than one, in the order of drawing."""
    return [
        np.column_stack(line.get_data()) for line in axes.get_lines() if len(line.get_xdata()) > 2
    ]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_overlaps_or_leaves_the_paper(drawn, name):
    check_layout(drawn[name])


def test_curves_are_the_validations(drawn, lms):
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


def test_a_diverged_run_is_left_out_and_said(fresh):
    path = fresh / "lm/gates-relu/metrics.jsonl"
    first = '{"step": 1, "epoch": 1, "tokens": 9, "seconds": 1.0, "train_loss": 9.0}'
    path.write_text(f'{first}\n{{"step": 1, "valid_loss": 900.0}}\n')
    picture = next(p for p in grid_tables.grid_pictures(read(fresh)) if p.name == "grid-gates")
    assert "not shown: ReLU." in picture.caption
    assert len(lines(picture.draw(LIGHT).axes[0])) == len(GATES) - 1


@given(
    st.lists(st.integers(1, 5000), min_size=1, max_size=5, unique=True),
    st.sampled_from(["bpe-{}", "{}", "k = {}", "v2-{}"]),
)
@settings(max_examples=30, deadline=None)
def test_series_are_labels_without_their_value(sizes, form):
    labels = [form.format(size) for size in sizes]
    grid = grid_tables.Grid(
        "g", "G", "line", "x", {}, dict(zip(labels, map(float, sizes), strict=True))
    )
    series, level = grid_tables.split(grid, {**dict.fromkeys(labels, 7.0), "char": 8.0})
    assert series == {form.replace("{}", "").strip(" -="): [(size, 7.0) for size in sorted(sizes)]}
    assert level == {"char": 8.0}


def test_runs_that_converged_at_different_epochs(fresh, lms):
    """How many each took stands beside; so does the perplexity of the weights of an epoch."""
    log = fresh / "lm/gates-relu/metrics.jsonl"
    log.write_text(log.read_text().replace('"epoch": 4', '"epoch": 7'))
    tree = json.loads((fresh / "ppl/gates-relu/test.json").read_text())
    write_json(tree | {"word_ppl": 200.0}, fresh / "ppl/gates-relu/test-epoch-3.json")
    rows = {row["run"]: row for row in tables(fresh)["Gates"]}
    assert {rows[label]["epochs"] for label in rows} == {"4", "7"}
    assert (rows["ReLU"]["epochs"], rows["GLU"]["epochs"]) == ("7", "4")
    assert float(rows["ReLU"]["test-epoch-3 ppl"]) == 200 and rows["GLU"]["test-epoch-3 ppl"] == "-"
    assert "epochs" not in tables(lms)["Gates"][0]


def test_the_best_run_of_a_group_on_valid_is_drawn(fresh):
    """Not the best on test; the table keeps all runs, and the caption says which were chosen."""
    runs = {"4, deep": "context-4", "4, wide": "context-13", "49": "context-49"}
    tree = {"title": "Best", "figure": "line", "x": "words", "runs": runs}
    tree |= {"of": {"4, deep": 4, "4, wide": 4}, "at": {"4, deep": 4, "4, wide": 4}}
    (fresh / "grids/best.yaml").write_text(yaml.safe_dump(tree))
    path = fresh / "ppl/context-13/valid.json"
    write_json(json.loads(path.read_text()) | {"word_ppl": 1000.0}, path)
    assert CONTEXT[13] < CONTEXT[4]
    rows = tables(fresh)["Best"]
    assert [row["run"] for row in rows] == list(runs)
    assert [row["best on valid of"] for row in rows] == ["4", "-", "49"]
    picture = next(p for p in grid_tables.grid_pictures(read(fresh)) if p.name == "grid-best")
    assert picture.caption.endswith("the best on valid is drawn: 4, deep; 49.")
    (line, *_) = picture.draw(LIGHT).axes[0].get_lines()
    assert list(zip(*line.get_data(), strict=True)) == [(4, CONTEXT[4]), (49, CONTEXT[49])]


def test_updates_to_where_the_weakest_drawn_run_came(fresh):
    """Each run's first validation that is as good as the best of the weakest drawn run."""
    losses = {
        "glu": [5.0, 4.0, 3.0, 2.9],
        "gtu": [5.0, 4.5, 4.0, 4.1],
        "relu": [5.0, 4.9, 4.8, 4.7],
    }
    for name, values in losses.items():
        lines = [{"step": 100 * i, "valid_loss": loss} for i, loss in enumerate(values, 1)]
        lines = [{"step": 1, "tokens": 9, "seconds": 1.0, "train_loss": 6.0}, *lines]
        path = fresh / f"lm/gates-{name}/metrics.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    runs = {"GLU": "gates-glu", "GTU, a": "gates-gtu", "GTU, b": "gates-relu"}
    tree = {"title": "Few", "runs": runs, "of": {"GTU, a": "GTU", "GTU, b": "GTU"}}
    (fresh / "grids/gates.yaml").write_text(yaml.safe_dump(tree))
    assert [row["updates to valid 54.6"] for row in tables(fresh)["Few"]] == ["200", "300", "-"]
    assert not any("updates to" in header for header in tables(fresh)["Context size"][0])


def test_a_grid_of_different_perplexities_has_no_best(fresh):
    mixed = {"title": "Mixed", "runs": {"one": "gcnn", "two": "elmo-char"}}
    (fresh / "grids/mixed.yaml").write_text(yaml.safe_dump(mixed))
    (table,) = [t for t in grid_tables.grid_tables(read(fresh)) if t.title == "Mixed"]
    assert [row[1] for row in table.rows] == ["perplexity", "two-way perplexity"]
    assert not table.best


def test_runs_that_are_not_there_are_named(fresh, capsys):
    for folder in ("lm", "ppl"):
        shutil.rmtree(fresh / folder / "gates-relu")
    assert [row["run"] for row in tables(fresh)["Gates"]] == [g for g in GATES if g != "ReLU"]
    assert "gates-relu: absent, so gates.yaml is compared without" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content",
    [
        "title: Gates\n",
        "figure: pie\nruns: {a: gcnn}\n",
        "figure: line\nx: x\nat: {a: far}\nruns: {a: gcnn}\n",
    ],
)
def test_a_damaged_grid_is_told(fresh, content):
    (fresh / "grids/gates.yaml").write_text(content)
    with pytest.raises(UserError, match=r"gates\.yaml: .*; |expected curves or line"):
        grid_tables.read_compared(fresh, Names(STYLE))
