"""Language models by themselves, and what rescoring with them reaches: one report of both."""

import json

import pytest
from unit.report.conftest import collect_lms, dump, experiment, lay_out
from unit.report.lm.toys import STYLE, lm_experiment

from lmtools.report.rescoring_figures import find_points, ppl_pictures
from lmtools.report.rescoring_tables import ppl_of_lists
from lmtools.report.write import make_pictures, make_tables, write_report


def titles(report) -> set[str]:
    """What tables are called, and how figures' names begin."""
    names = {picture.name.partition("-")[0] for picture in make_pictures(report)}
    return names | {table.title for table in make_tables(report)}


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
    report = collect_lms(lm_experiment(tmp_path / "egs/gbw", grids=()), style=STYLE)
    assert not {"Weights", "ppl"} & titles(report)


def test_perplexities_of_lists_are_apart(home):
    """Those of the sets dev and test, which lists have; valid stays."""
    report = collect_lms(home, style=STYLE)
    assert {name for model in report.models.values() for name in model.figures} == {"valid"}
    assert {name for _, name in ppl_of_lists(report)} == {"dev", "test"}
    (measured,) = report.lists.judged
    assert report.rows.value("system", "tta", "wer", "test") == measured.results["tta"].score
    assert {"WER after rescoring: test", "Perplexity beside WER %", "Weights"} <= titles(report)
    assert "bootstrap" in "".join(report.provenance()) and report.browsed.sets


def test_points_of_the_figure(home):
    """A panel for each kind of perplexity, a point for each language model that rescores alone."""
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


def test_the_page_has_both(home):
    text, _ = write_report(home, what="lm")
    page = (home / "report/RESULTS.md").read_text()
    assert "Perplexity: " in text and "WER after rescoring: test" in text
    assert "](ppl-test.png)" in page and (home / "report/ppl-test.png").exists()
