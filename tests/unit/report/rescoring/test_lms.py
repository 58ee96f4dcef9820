"""Language models by themselves, and what rescoring with them reaches: one report of both."""

import json

import pytest
from unit.report.conftest import dump, experiment
from unit.report.lm.test_figures import figure
from unit.report.lm.toys import STYLE, lm_experiment

from lmtools.report.rescoring.lms import collect_rescoring_lms, rescoring_pictures, rescoring_tables
from lmtools.report.rescoring.ppl_figures import find_points
from lmtools.report.write import write_report


@pytest.fixture
def home(tmp_path):
    """An experiment with language models of both kinds of perplexity and rescored lists."""
    home = tmp_path / "egs/gbw"
    experiment(home)
    path = home / "exp/ppl/tta/test.json"
    tree = json.loads(path.read_text())
    dump({**tree, "kind": "two-way perplexity"}, path)
    return lm_experiment(home, grids=())


def test_without_lists_it_is_of_language_models_alone(tmp_path):
    report = collect_rescoring_lms(lm_experiment(tmp_path / "egs/gbw", grids=()), style=STYLE)
    assert not list(rescoring_tables(report)) and not list(rescoring_pictures(report))
    assert report.quantity("score", "lstm", "test") is None


def test_perplexities_of_lists_are_apart(home):
    """Those of the sets dev and test, which lists have; valid stays."""
    report = collect_rescoring_lms(home, style=STYLE)
    assert {name for model in report.models.values() for name in model.figures} == {"valid"}
    assert {name for _, name in report.rescored.ppl} == {"dev", "test"}
    (measured,) = report.rescored.judged
    assert report.quantity("score", "tta", "test") == measured.results["tta"].score
    titles = [table.title for table in rescoring_tables(report)]
    assert titles == ["WER after rescoring: test", "Perplexity beside WER %", "Weights"]
    assert "bootstrap" in "".join(report.draws) and report.browsed()["sets"]


def test_points_of_the_figure(home):
    """A panel for each kind of perplexity, a point for each language model that rescores alone."""
    report = collect_rescoring_lms(home, style=STYLE)
    (measured,) = report.rescored.judged
    panels = find_points(report.rescored, measured)
    assert {kind: [one.lm for one in points] for kind, points in panels.items()} == {
        "perplexity": ["ngram", "causal"],
        "two-way perplexity": ["tta"],
        "pseudo-perplexity": ["masked"],
    }
    for one in (point for points in panels.values() for point in points):
        tree = json.loads((home / f"ppl/{one.lm}/test.json").read_text())
        assert one.ppl == tree["word_ppl"]
        assert one.score == measured.results[one.lm].score
        assert one.interval[0] <= one.score <= one.interval[1]
    (picture,) = rescoring_pictures(report)
    made, texts = figure(picture)
    assert picture.name == "ppl-test" and len(made.axes) == 3
    for kind, axes in zip(panels, made.axes, strict=True):
        assert kind in axes.get_xlabel() and len(axes.texts) == len(panels[kind])
    assert texts


def test_the_page_has_both(home):
    text, _ = write_report(home, what="lm")
    page = (home / "report/RESULTS.md").read_text()
    assert "Perplexity: " in text and "WER after rescoring: test" in text
    assert "](ppl-test.png)" in page and (home / "report/ppl-test.png").exists()
