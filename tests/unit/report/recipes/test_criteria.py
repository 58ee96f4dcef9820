"""Output layers and training criteria: what criteria_tables.py of egs/librispeech/studies adds to a
report, against the files that it is made from.
"""

import dataclasses
from pathlib import Path

import criteria_tables as added
import numpy as np
import pytest
from makeups import names_of

from lmtools.models.outputs import CRITERIA
from lmtools.report import write_report
from lmtools.report.drawing import DARK, LIGHT, Picture
from lmtools.report.models import curve
from lmtools.report.rows import FigureRows
from lmtools.report.style import FIRST, load_style

CONF = Path(__file__).parents[4] / "egs/librispeech/conf/report.yaml"
ORDER = [
    "MSE", "MSE-sigmoid", "BCE", "CE", "BCE-MCS", "BCE-MCS", "BCE-IS", "BCE-CPS", "BCE-NCE",
    "CE-MCS", "CE-IS", "CE-CPS", "CE-NCE log h",
    "adaptive softmax",
]  # fmt: skip


@pytest.fixture(scope="module")
def trained(compared):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Picture, "png", lambda picture, theme: b"")
        write_report(compared, style=load_style(CONF))
    return added.read_trained(compared, CONF)


@pytest.fixture(scope="module")
def drawn(trained):
    return list(added.criteria_pictures(trained))


def test_every_criterion_has_a_name_a_place_and_a_look():
    assert set(added.CRITERIA) == set(CRITERIA)
    every = list(added.CRITERIA.values())
    assert len({one.look.light for one in every}) == len(every)
    for panel in {one.panel for one in every}:
        shapes = [(one.look.marker, one.look.line) for one in every if one.panel == panel]
        assert len(set(shapes)) == len(shapes)  # told apart without colour


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("lstm-softmax", "CE LSTM"),
        ("lstm-ce-nce", "CE-NCE log h LSTM"),
        ("lstm-bce-mcs-unigram", "BCE-MCS LSTM, unigram"),
        ("tta-bce-nce", "BCE-NCE T-TA"),
        ("lstm-bce-nce-unnormalised", "BCE-NCE LSTM, unnormalised"),
        ("causal-bce-is-unnormalised+ngram", "BCE-IS uniLM, unnormalised + n-gram"),
        ("lattice-lstm-bce-mcs+ngram", "BCE-MCS LSTM + n-gram, lattice"),
    ],
)
def test_labels_of_criteria_are_the_recipe_s(name, label):
    names = names_of(name)
    assert label not in names.label(name)  # which guesses nothing from names
    assert dataclasses.replace(names, style=load_style(CONF)).label(name) == label


@pytest.mark.parametrize(
    ("output", "noise", "samples"),
    [
        (None, "log-uniform", 8192),
        ({"noise": "unigram", "samples": 512}, "unigram", 512),
        (
            {"noise": "unigram", "power": 1.0, "drawing": "distinct"},
            "unigram, power 1.0, distinct",
            8192,
        ),
        ({"drawing": "tries"}, "log-uniform, tries", 8192),
    ],
)
def test_noise_is_what_the_facts_say_and_further_settings_that_were_given(output, noise, samples):
    facts = {"name": "ce-is", **vars(CRITERIA["ce-is"].Config(**(output or {})))}
    tree = {"criterion": "ce-is", "output": output, "facts": {"criterion": facts}}
    one = added.make_entry("a", tree, ())
    assert (one.noise, one.samples) == (noise, samples)
    facts = {"name": "bce", **vars(CRITERIA["bce"].Config())}
    tree = {"criterion": "bce", "output": {"rival": 0.5}, "facts": {"criterion": facts}}
    assert added.make_entry("a", tree, ()).noise is None


def test_trunks_of_one_model_are_told_apart(trained):
    configs = {
        "a": {"model": "lstm", "criterion": "bce", "arch": {"units": 64, "layers": 2}},
        "b": {"model": "lstm", "arch": {"layers": 2, "units": 64}},
        "c": {"model": "lstm", "criterion": "bce", "arch": {"units": 128, "layers": 2}},
        "d": {"model": "lstm", "criterion": "bce", "arch": {"units": 128, "layers": 2}},
        "e": {"model": "causal"},
        "f": {"vocabulary": {}},
    }
    two, wide = added.list_trunks(dataclasses.replace(trained, configs=configs))
    assert (two.title, wide.title) == ("LSTM (units 64)", "LSTM (units 128)")
    assert [one.name for one in two.entries] == ["a", "b"]
    assert list(wide.titles.values()) == ["BCE (c)", "BCE (d)"]
    assert (two.key, wide.key) == ("lstm-1", "lstm-2")


def test_figures_are_the_same_bytes_again(drawn):
    names = "criteria-lstm-time criteria-lstm-price criteria-tta-time criteria-tta-price"
    assert " ".join(picture.name for picture in drawn) == names
    time, price = drawn[:2]
    assert time.png(LIGHT) == time.png(LIGHT) and price.png(LIGHT) != price.png(DARK)
    assert "BCE-NCE" in time.alt and "BCE-NCE" in price.alt


def test_a_training_that_diverges_spoils_no_figure(trained):
    lstm, _ = added.list_trunks(trained)
    end = {"step": 20, "seconds": 6.0, "train_loss": 1.0}
    losses = [4.0, 5.0, 300.0, 4.5, 4.2, 4.4]
    curves = {
        one: curve([end, {"step": 20, "valid_loss": loss}])
        for one, loss in zip(lstm.entries, losses, strict=False)
    }
    assert (
        len(curve([end, {"step": 20, "valid_loss": float("nan")}]))
        == len(curve([{**end, "seconds": 0.0}]))
        == 0
    )
    assert curve([end, {"step": 10, "valid_loss": 1.0}, {"step": 20, "valid_loss": 1e9}]).shape == (
        1,
        2,
    )
    (axes,) = added.draw_curves(lstm, curves, LIGHT).axes
    assert "BCE  1.9e+130" in [text.get_text() for text in axes.texts]
    assert axes.get_ylim()[0] < np.exp(4.0) < np.exp(5.0) < axes.get_ylim()[1] < 1000


def test_each_panel_has_a_family_and_the_full_softmax(trained):
    lstm, tta = added.list_trunks(trained)
    curves = {one: curve(trained.learning[one.name]) for one in lstm.entries}
    panels = added.draw_curves(lstm, curves, LIGHT).axes
    assert [axes.get_title() for axes in panels] == [
        "full",
        "BCE, sampled",
        "CE, sampled and adaptive",
    ]
    found = [{line.get_label(): line for line in axes.get_lines()} for axes in panels]
    assert " ".join(found[1]) == (
        "lstm-softmax lstm-bce-mcs lstm-bce-mcs-unigram lstm-bce-is lstm-bce-cps lstm-bce-nce"
    )
    assert [len(lines) for lines in found] == [4, 6, 6]
    assert "lstm-softmax" in found[2]
    line = found[1]["lstm-bce-is"]
    assert np.allclose(
        np.stack([60 * line.get_xdata(), line.get_ydata()], 1), curves[lstm.entries[6]]
    )
    far = found[0]["lstm-mse"]  # 6400: the others would be one line if it were in the scale
    assert far.get_ydata() == [panels[0].get_ylim()[1]]
    assert panels[0].get_ylim()[1] < 1000
    assert "MSE  6," in " ".join(text.get_text() for text in panels[0].texts)
    assert (
        len(added.draw_curves(tta, dict.fromkeys(tta.entries, curves[lstm.full]), LIGHT).axes) == 1
    )


def test_other_metrics_have_no_matched_pairs(trained):
    """Highest is best, and the note speaks of the bootstrap."""
    rows = [r._replace(quantity="bleu") if r.quantity == "wer" else r for r in trained.rows.every]
    bleu = dataclasses.replace(trained, rows=FigureRows(rows))
    assert bleu.metric == "bleu" and bleu.metric_label == "BLEU"
    assert bleu.scores("test")[FIRST] == trained.scores("test")[FIRST]
    table, *_, rough, _, _ = added.criteria_tables(bleu)
    assert any("paired bootstrap" in note for note in rough.notes)
    place = table.header.index("BLEU")
    scores = [float(cells[place]) for cells in table.rows]
    best = {i for i, score in enumerate(scores) if score == max(scores)}
    assert {i for i, j in table.best if j == place} == best
