"""Word confidences in the report: rows, table, figure, shades of words in the page."""

import random
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from unit.report.conftest import collect_rescoring
from unit.report.page.test_browser import CHROMIUM, dom

from lmtools.formats import jsonl, kaldi_text
from lmtools.networks import files as network_files
from lmtools.networks.confidence import judge_words
from lmtools.report import write_report
from lmtools.report.drawing import LIGHT
from lmtools.report.write import browser_data, make_pictures, make_tables
from lmtools.types import ConfusionNetwork, Slot

KINDS = ("posteriors", "confidences")


def network_of(utt: str, text: str, rng) -> ConfusionNetwork:
    """A network that chose the words of a text, surer than it says."""
    slots = []
    for word in text.split():
        share = rng.uniform(0.4, 1)
        slots.append(Slot({word: share, "": 1 - share}, word, round(share**2, 3)))
    return ConfusionNetwork(utt, tuple(slots))


@pytest.fixture(scope="module")
def marked(exp, tmp_path_factory):
    """An experiment with calibrated networks, a ctm, and networks without texts."""
    home = tmp_path_factory.mktemp("marked")
    shutil.copytree(exp.parent, home, dirs_exist_ok=True)
    rng = random.Random(3)
    for system, end in (("tta", "json"), ("ngram", "ctm")):
        texts = kaldi_text.read(home / f"exp/rescore/{system}/test.txt")
        networks = [network_of(utt, text, rng) for utt, text in texts.items()]
        network_files.NETWORKS[end].write(networks, home / f"exp/network/{system}/test.{end}")
    plain = [
        replace(one, slots=tuple(replace(s, confidence=s.words[s.chosen]) for s in one.slots[1:]))
        for one in network_files.read(home / "exp/network/tta/test.json")
    ]
    network_files.write(plain, home / "exp/network/consensus/test.json")
    return home / "exp"


@pytest.fixture(scope="module")
def report(marked):
    return collect_rescoring(marked)


def test_rows_are_the_figures_of_the_judged_words(marked, report):
    refs = {n.utt: n.ref for n in jsonl.read(marked.parent / "data/test/nbest.jsonl.gz")}
    after = judge_words(network_files.read(marked / "network/tta/test.json"), refs)
    value = report.rows.value
    assert value("confidences", "tta", "NCE", "test") == after.cross_entropy
    assert value("confidences", "tta", "ECE %", "test") == 100 * after.calibration_error
    assert value("confidences", "tta", "ROC area", "test") == after.area
    before = value("posteriors", "tta", "ECE %", "test")
    assert before != value("confidences", "tta", "ECE %", "test")
    roc = [row for row in report.rows.every if row[:4] == ("confidences", "tta", "test", ROC)]
    assert [row.at for row in roc] == [place / 100 for place in range(101)]
    area = np.trapezoid([row.value for row in roc], dx=0.01)
    assert area == pytest.approx(after.area, abs=0.01)


ROC = "share of right words"


def test_a_ctm_has_no_posteriors_and_plain_networks_no_calibration(report):
    kinds = {(row.kind, row.name) for row in report.rows.every if row.kind in KINDS}
    assert kinds == {
        ("posteriors", "tta"),
        ("confidences", "tta"),
        ("confidences", "ngram"),
        ("posteriors", "consensus"),
    }


def test_a_network_without_texts_is_a_system(report):
    assert report.rows.value("system", "consensus", "wer", "test") > report.rows.value(
        "system", "tta", "wer", "test"
    )  # a word less an utterance


def test_table_and_figure(report):
    table = next(t for t in make_tables(report) if t.title == "Confidences of words: test")
    named = [row[:2] for row in table.rows]
    assert [kind for label, kind in named if label == "T-TA"] == list(KINDS)
    value = report.rows.value("confidences", "tta", "ECE %", "test")
    row = table.rows[named.index(("T-TA", "confidences"))]
    assert row[table.header.index("ECE %")] == f"{value:.2f}"
    picture = next(p for p in make_pictures(report) if p.name == "confidence-test")
    assert f"T-TA, confidences {value:.2f}%" in picture.alt
    reliability, roc = picture.draw(LIGHT).axes
    drawn = {line.get_label().partition("\n")[0]: line for line in reliability.get_lines()}
    points = [r for r in report.rows.every if r[:4] == ("posteriors", "tta", "test", "share right")]
    assert drawn["T-TA, posteriors"].get_xdata().tolist() == [row.at for row in points]
    assert drawn["T-TA, posteriors"].get_ydata().tolist() == [row.value for row in points]
    colours = {name: line.get_color() for name, line in drawn.items()}
    assert colours["T-TA, posteriors"] == colours["T-TA, confidences"]
    assert len(roc.get_legend().get_texts()) == 4


def test_browser_has_hundredths_where_the_words_are_the_systems_own(marked, report):
    data = browser_data(report.browsed)
    place = [name for name, _ in data["systems"]].index("tta")
    networks = {n.utt: n for n in network_files.read(marked / "network/tta/test.json")}
    for utt, _, hyps, choices, shares in data["sets"][0]["utts"]:
        wanted = [int(100 * slot.confidence) for slot in networks[utt].slots]
        assert shares[str(place)] == wanted
        assert len(wanted) == len(hyps[choices[place]][0].split())


def test_other_words_have_no_shades(marked, tmp_path):
    shutil.copytree(marked.parent, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "exp/network/tta/test.json"
    shutil.copy(tmp_path / "exp/network/consensus/test.json", path)
    data = browser_data(collect_rescoring(tmp_path / "exp").browsed)
    place = str([name for name, _ in data["systems"]].index("tta"))
    shown = [utt for utt in data["sets"][0]["utts"] if utt[1] and utt[4].get(place)]
    assert not shown


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
def test_page_shades_words_where_asked(marked, report):
    write_report(marked)
    page = marked / "report/index.html"
    assert 'class="sure' not in re.search(r'<ol id="list".*?</ol>', dom(page), re.DOTALL)[0]
    document = dom(page, system="tta", colour="confidence")
    shown = re.search(r'<ol id="list".*?</ol>', document, re.DOTALL)[0]
    lines = re.findall(r'<dd class="system">(.*?)</dd>', shown)
    data = browser_data(report.browsed)
    place = [name for name, _ in data["systems"]].index("tta")
    wanted = [utt[4][str(place)] for utt in data["sets"][0]["utts"]]
    titles = [re.findall(r'title="confidence ([\d.]+)"', line) for line in lines]
    assert titles == [[f"{share / 100:.2f}" for share in shares] for shares in wanted]
    shades = [shade for line in lines for shade in re.findall(r'class="sure ?(\w*)"', line)]
    limits = (30, 50, 70, 90)
    expected = [sum(share >= limit for limit in limits) for shares in wanted for share in shares]
    assert shades == [f"sure{level}" if level < 4 else "" for level in expected]


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
def test_page_without_confidences_does_not_offer_them(reported):
    document = dom(reported / "report/index.html", colour="confidence")
    assert re.search(r'<label id="colours" hidden', document)
    assert 'data-colour="changes"' in document
