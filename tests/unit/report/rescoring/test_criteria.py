"""The section on output layers and training criteria, against the files that it is made from."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from makeups import names_of
from matplotlib.figure import Figure
from unit.report.conftest import collect_rescoring

from lmtools.evaluate import References, evaluate
from lmtools.formats import kaldi_text
from lmtools.models.outputs import CRITERIA
from lmtools.report.figures.criteria import draw_curves, draw_price
from lmtools.report.figures.rescoring import legible
from lmtools.report.names import Names
from lmtools.report.page.drawing import DARK, LIGHT, spread
from lmtools.report.page.html import browser_data, page
from lmtools.report.page.table import NONE
from lmtools.report.parts.models import curve, step_time
from lmtools.report.style import load_style
from lmtools.report.tables.criteria import criteria_tables
from lmtools.report.tables.trunks import list_trunks, make_entry
from lmtools.report.write import make_pictures, make_tables, results

CONF = Path(__file__).parents[4] / "egs/librispeech/conf/report.yaml"
ORDER = [
    "MSE", "MSE-sigmoid", "BCE", "CE", "BCE-MCS", "BCE-MCS", "BCE-IS", "BCE-CPS", "BCE-NCE",
    "CE-MCS", "CE-IS", "CE-CPS", "CE-NCE log h",
    "adaptive softmax",
]  # fmt: skip


@pytest.fixture(scope="module")
def report(compared):
    return collect_rescoring(compared, style=load_style(CONF))


@pytest.fixture(scope="module")
def printed(report):
    return {table.title: table for table in criteria_tables(report)}


def row(table, criterion, noise=None):
    """The cells of one criterion by header; of headers that come twice as lists."""
    (cells,) = [
        cells for cells in table.rows if cells[0] == criterion and noise in (None, cells[1])
    ]
    found = {}
    for header, cell in zip(table.header, cells, strict=True):
        found.setdefault(header, []).append(cell)
    return {header: cells if len(cells) > 1 else cells[0] for header, cells in found.items()}


def wer(compared, system):
    refs = kaldi_text.read(compared.parent / "data/test/text")
    return evaluate(refs, kaldi_text.read(compared / f"rescore/{system}/test.txt"), "wer").score


def test_every_criterion_has_a_name_a_place_and_a_look():
    printed = load_style().criteria
    assert set(printed) == set(CRITERIA)
    drawn = [(one.look.light, one.look.marker, one.look.line) for one in printed.values()]
    assert len({color for color, _, _ in drawn}) == len(drawn)
    for panel in {one.panel for one in printed.values()}:
        shapes = [
            (one.look.marker, one.look.line) for one in printed.values() if one.panel == panel
        ]
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
    one = make_entry(Names(), "a", tree, ())
    assert (one.noise, one.samples) == (noise, samples)
    facts = {"name": "bce", **vars(CRITERIA["bce"].Config())}
    tree = {"criterion": "bce", "output": {"rival": 0.5}, "facts": {"criterion": facts}}
    assert make_entry(Names(), "a", tree, ()).noise is None


def test_noise_that_an_older_version_did_not_say_is_unknown():
    one = make_entry(Names(), "a", {"criterion": "ce-is", "output": {"samples": 9}}, ())
    assert (one.noise, one.samples) == (None, 9)


def test_models_are_compared_with_their_like(report):
    lstm, tta = list_trunks(report)
    assert [one.shown.label for one in lstm.entries] == ORDER
    # and not with tta, whose architecture is another
    assert [one.name for one in tta.entries] == ["tta-softmax", "tta-bce-nce"]
    assert lstm.full.name == "lstm-softmax"
    assert (
        lstm.facts == "Model lstm, objective causal, dim 256, layers 2; vocabulary of 50,000 ids."
    )
    assert list(lstm.titles.values())[4:6] == ["BCE-MCS, log-uniform", "BCE-MCS, unigram"]
    assert [
        title for place, title in enumerate(lstm.titles.values()) if place not in (4, 5)
    ] == ORDER[:4] + ORDER[6:]


def test_trunks_of_one_model_are_told_apart(report):
    configs = {
        "a": {"model": "lstm", "criterion": "bce", "arch": {"units": 64, "layers": 2}},
        "b": {"model": "lstm", "arch": {"layers": 2, "units": 64}},
        "c": {"model": "lstm", "criterion": "bce", "arch": {"units": 128, "layers": 2}},
        "d": {"model": "lstm", "criterion": "bce", "arch": {"units": 128, "layers": 2}},
        "e": {"model": "causal"},
        "f": {"vocabulary": {}},
    }
    two, wide = list_trunks(dataclasses.replace(report, configs=configs))
    assert (two.title, wide.title) == ("LSTM (units 64)", "LSTM (units 128)")
    assert [one.name for one in two.entries] == ["a", "b"]
    assert list(wide.titles.values()) == ["BCE (c)", "BCE (d)"]
    assert (two.key, wide.key) == ("lstm-1", "lstm-2")


def test_an_experiment_with_the_softmax_alone_has_no_such_section(exp):
    report = collect_rescoring(exp)
    assert list(criteria_tables(report)) == []
    assert not [picture for picture in make_pictures(report) if picture.part == "criteria"]
    assert 'href="#criteria"' not in page(report, make_tables(report), (), ())


def test_tables(printed):
    normalised = [
        f"Output layers and training criteria: {trunk}, test" for trunk in ("LSTM", "T-TA")
    ]
    assert list(printed) == normalised + [
        f"Without normalisation: {of}"
        for of in ("LSTM, test", "LSTM, test, lattices", "T-TA, test")
    ]
    assert [cells[0] for cells in printed[normalised[0]].rows] == ORDER
    assert {table.part for table in printed.values()} == {"criteria"}
    assert not any("`./run.sh --corpus mini`" in repr(table) for table in printed.values())


def test_cost_and_outcome(compared, report, printed):
    table = printed["Output layers and training criteria: LSTM, test"]
    cells, full = row(table, "BCE-MCS", "unigram"), row(table, "CE")
    lines = [
        json.loads(line)
        for line in (compared / "lm/lstm-bce-mcs-unigram/metrics.jsonl").read_text().splitlines()
    ]
    times = {line["step"]: line["seconds"] for line in lines if "seconds" in line}
    assert float(cells["ms a step"]) == pytest.approx(
        1000 * (times[3000] - times[50]) / 2950, abs=0.05
    )
    assert float(cells["x CE"]) == pytest.approx(
        float(cells["ms a step"]) / float(full["ms a step"]), abs=0.006
    )
    ppl = [
        json.loads((compared / f"ppl/lstm-{name}/test.json").read_text())["word_ppl"]
        for name in ("bce-mcs-unigram", "softmax")
    ]
    assert float(cells["test ppl"]) == pytest.approx(ppl[0], abs=0.05)
    assert cells["to CE"] == f"{100 * ppl[0] / ppl[1] - 100:+.1f}%"
    assert row(table, "MSE")["to CE"] == "45 times"
    systems = {"WER %": "", "+ n-gram": "+ngram"}
    systems |= {
        f"lattice {title}".replace(" WER %", ""): f"{{}}{rest}" for title, rest in systems.items()
    }
    for place, (title, rest) in enumerate(systems.items()):
        system = (
            ("lattice-" if "{}" in rest else "") + "lstm-bce-mcs-unigram" + rest.replace("{}", "")
        )
        assert cells[title] == f"{wer(compared, system):.2f}"
        low, high = report.lists.sets[1].results[system].bootstrap.score_interval
        assert cells["95% CI"][place] == f"{low:.2f}-{high:.2f}"
    assert cells["K"] == "1,024"
    assert full["K"] == full["noise"] == NONE


def test_the_best_of_a_column_is_stressed(printed):
    table = printed["Output layers and training criteria: LSTM, test"]
    stressed = {table.header[j]: table.rows[i][0] for i, j in table.best}
    assert stressed["ms a step"] == "CE-MCS"
    assert stressed["valid ppl"] == stressed["test ppl"] == "CE"
    for header in ("WER %", "+ n-gram", "lattice"):
        place = table.header.index(header)
        best = {i for i, j in table.best if j == place}
        scores = [float(cells[place]) for cells in table.rows]
        assert best == {i for i, score in enumerate(scores) if score == min(scores)}
    assert not {"x CE", "to CE", "95% CI", "K"} & set(stressed)


def test_columns_that_nobody_fills_are_left_out(printed):
    table = printed["Output layers and training criteria: T-TA, test"]
    assert table.header == (
        "criterion",
        "noise",
        "K",
        "ms a step",
        "x CE",
        "valid pseudo-ppl",
        "test pseudo-ppl",
        "to CE",
    )
    assert not [note for note in table.notes if "compare with" in note]


@pytest.mark.parametrize("lattice", ["", "lattice-"])
def test_without_normalisation(compared, printed, lattice):
    table = printed["Without normalisation: LSTM, test" + (", lattices" if lattice else "")]
    refs = kaldi_text.read(compared.parent / "data/test/text")
    titles = ("lattice", "lattice + n-gram") if lattice else ("WER %", "+ n-gram")
    moved = 0
    for criterion in ("CE", "BCE-NCE", "CE-MCS"):
        cells = row(table, criterion)
        name = f"{lattice}lstm-{'softmax' if criterion == 'CE' else criterion.lower()}"
        without = cells["without"][:: 2 if lattice else 1]
        for place, (title, rest) in enumerate(zip(titles, ("", "+ngram"), strict=True)):
            plain, rough = wer(compared, name + rest), wer(compared, f"{name}-unnormalised{rest}")
            assert (cells[title], without[place]) == (f"{plain:.2f}", f"{rough:.2f}")
            assert cells["change"][place] == f"{rough - plain:+.2f}"
            texts = [
                kaldi_text.read(compared / f"rescore/{one}{rest}/test.txt")
                for one in (f"{name}-unnormalised", name)
            ]
            p = References(refs).compare(*texts).p
            assert float(cells["p"][place].removeprefix("<")) == pytest.approx(p, abs=0.0011)
            moved += rough != plain
        tree = json.loads(
            (compared / f"ppl/{name.removeprefix('lattice-')}/test.json").read_text()
        )["log_normaliser"]
        assert (cells["log Z mean"], cells["log Z sd"]) == (
            f"{tree['mean']:.3f}",
            f"{tree['sd']:.3f}",
        )
    assert moved  # or the signs were not tested


def test_what_lattices_took_with_and_without(printed):
    cells = row(printed["Without normalisation: LSTM, test, lattices"], "BCE-NCE")
    assert cells["real-time factor"] == ["0.113", "0.113"]
    assert cells["without"][1::2] == ["0.025", "0.025"]


def test_log_z_alone_is_a_table(printed):
    table = printed["Without normalisation: T-TA, test"]
    assert table.header == ("criterion", "noise", "log Z mean", "log Z sd")
    assert not [note for note in table.notes if "change" in note]


def test_unnormalised_systems_are_nowhere_else(compared, report):
    assert "lstm-bce-nce-unnormalised" in report.lists.systems
    assert "lstm-bce-nce-unnormalised+ngram" in report.lists.sets[1].unnormalised
    others = [table for table in make_tables(report) if table.part not in ("criteria", "papers")]
    assert "unnormalised" not in repr(others)
    assert "BCE-NCE LSTM" in repr(others)
    assert "unnormalised" not in repr(browser_data(report.browsed))
    assert report.lists.hashes.keys() >= {"lstm-bce-nce", "tta"}


def test_figures_of_lines_leave_out_what_they_cannot_show(report):
    every = {picture.name: picture for picture in make_pictures(report)}
    shown = {line.get_label() for line in every["length-test"].draw(LIGHT).axes[0].get_lines()}
    assert {"first pass", "T-TA", "CE LSTM", "CE LSTM + n-gram"} <= shown
    assert not [text for text in shown if "NCE" in text]
    # 13 models; alone and with the n-gram, on lists and on lattices
    assert "52 are left out" in every["length-test"].caption
    few = ["tta", "tta-bce-nce"]
    assert legible(report, few) == (few, "")


def test_names_of_figures(report):
    drawn = [picture.name for picture in make_pictures(report)]
    assert " ".join(drawn[:4]) == (
        "criteria-lstm-time criteria-lstm-price criteria-tta-time criteria-tta-price"
    )
    assert len(set(drawn)) == len(drawn)


def test_figures_are_the_same_bytes_again(report):
    time, price = make_pictures(report)[:2]
    assert time.png(LIGHT) == time.png(LIGHT)
    assert price.png(LIGHT) != price.png(DARK)
    assert "BCE-NCE" in time.alt
    assert "BCE-NCE" in price.alt


def test_curves_are_over_time_in_training_steps():
    lines = [
        {"step": 10, "seconds": 2.0, "train_loss": 5.0},
        {"step": 15, "valid_loss": np.log(90)},
        {"step": 20, "seconds": 6.0, "train_loss": 4.0},
        {"step": 20, "valid_loss": np.log(70)},
    ]
    assert np.allclose(curve(lines), [(4, 90), (6, 70)])
    assert curve(lines[:1]).shape == curve(lines[1:2]).shape == (0, 2)


def test_a_training_that_diverges_spoils_no_figure(report):
    lstm, _ = list_trunks(report)
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
    (axes,) = draw_curves(lstm, curves, LIGHT).axes
    assert "BCE  1.9e+130" in [text.get_text() for text in axes.texts]
    assert axes.get_ylim()[0] < np.exp(4.0) < np.exp(5.0) < axes.get_ylim()[1] < 1000


def test_each_panel_has_a_family_and_the_full_softmax(report):
    lstm, tta = list_trunks(report)
    curves = {one: curve(report.learning[one.name]) for one in lstm.entries}
    panels = draw_curves(lstm, curves, LIGHT).axes
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
    assert len(draw_curves(tta, dict.fromkeys(tta.entries, curves[lstm.full]), LIGHT).axes) == 1


def test_points_lie_at_their_price(report):
    lstm, _ = list_trunks(report)
    points = {one: (one.milliseconds, 100.0 + place) for place, one in enumerate(lstm.entries)}
    (axes,) = draw_price(lstm, points, "perplexity", LIGHT).axes
    found = {
        line.get_label(): (line.get_xdata()[0], line.get_ydata()[0]) for line in axes.get_lines()
    }
    assert all(found[one.name] == point for one, point in points.items())
    texts = [text.get_text() for text in axes.texts]
    assert sorted(texts) == sorted(
        f"{title}  {points[one][1]:.1f}"
        for title, one in zip(list(lstm.titles.values()), lstm.entries, strict=True)
    )
    # the labels of the fast ones
    heights = sorted(text.xyann[1] for text in axes.texts if text.xyann[0] < 1)
    assert np.diff(heights).min() > 0.055


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


def test_the_page_has_the_section(report):
    every = make_tables(report)
    drawn = [
        dataclasses.replace(picture, draw=lambda theme: Figure((1, 1)))
        for picture in make_pictures(report)
    ]
    source = page(report, every, drawn, [b""] * len(drawn))
    assert 'href="#criteria"' in source
    section = source[source.index('<section id="criteria"') : source.index('<section id="figures"')]
    assert section.count("<table") == 5
    assert section.count("<img") == 4
    assert "BCE-NCE" in section
    assert source.count("<table") == len(every)
    assert source.count("<img") == len(drawn)
    written = results(report, every, drawn)
    assert "## Output layers and training criteria: LSTM, test" in written
    assert "](criteria-lstm-price.png)" in written


def test_other_metrics_have_no_matched_pairs(compared, report):
    measured = report.lists.sets[1]
    bleu = dataclasses.replace(measured, refs=References(measured.sample.refs, "bleu"))
    for kind in ("results", "unnormalised"):
        statistics = np.random.default_rng(1).integers(1, 9, (len(measured.lengths), 10))
        every = {
            name: dataclasses.replace(one, statistics=statistics)
            for name, one in getattr(measured, kind).items()
        }
        bleu = dataclasses.replace(bleu, **{kind: every})
    experiment = dataclasses.replace(report, lists=dataclasses.replace(report.lists, metric="bleu"))
    experiment.__dict__["sets"] = [report.lists.sets[0], bleu]
    found = list(criteria_tables(experiment))
    rough = next(table for table in found if table.title == "Without normalisation: LSTM, test")
    assert any("paired bootstrap" in note for note in rough.notes)
    assert row(rough, "BCE-NCE")["p"] == ["1.000", "1.000"]
    place = found[0].header.index("BLEU")
    scores = [float(cells[place]) for cells in found[0].rows]
    assert {i for i, j in found[0].best if j == place} == {
        i for i, score in enumerate(scores) if score == max(scores)
    }
