"""Words of a glossary in the report: rows, table, marks of words in the page."""

import csv
import json
import re
import shutil
from collections import Counter
from html import unescape
from pathlib import Path

import pytest
from unit.report.conftest import collect_rescoring, rows_of, titled
from unit.report.page.test_browser import CHROMIUM, count, dom, shown

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats import jsonl, kaldi_text
from lmtools.phrases.evaluate import FALSE, MISSED, list_errors
from lmtools.phrases.glossary import PhraseSpec
from lmtools.report.experiment import collect
from lmtools.report.write import browser_data

PHRASES = ("Servants", "came he", "unto the", "the | thy", "hath", "said", "in")


@pytest.fixture(scope="module")
def spec(tmp_path_factory) -> PhraseSpec:
    path = tmp_path_factory.mktemp("glossary") / "names.txt"
    path.write_text("\n".join(PHRASES) + "\n")
    return PhraseSpec(str(path))


@pytest.fixture(scope="module")
def report(exp, spec):
    return collect_rescoring(exp, words=spec)


@pytest.fixture(scope="module")
def page(exp, spec, tmp_path_factory) -> Path:
    """The page of the experiment, written by the command, with the figures beside it."""
    home = tmp_path_factory.mktemp("judged") / "made-up"
    shutil.copytree(exp.parent, home, ignore=shutil.ignore_patterns("report"))
    assert main(["report", str(home / "exp"), "--words", spec.path]) == 0
    return home / "exp/report/index.html"


def evaluated(exp, spec, system: str, folder: Path) -> dict:
    """What lmtools evaluate --words finds of a system beside the first pass."""
    home, out = exp.parent, folder / "words.json"
    files = {"ref": home / "data/test/text", "hyp": exp / f"rescore/{system}/test.txt"}
    files |= {"against": home / "data/test/nbest.jsonl.gz", "words": spec.path, "out": out}
    words = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    assert main(["evaluate", *words]) == 0
    return json.loads(out.read_text())["words"]


def test_rows_are_those_of_the_command(exp, spec, report, page, tmp_path):
    tree = evaluated(exp, spec, "tta", tmp_path)
    assert tree["counts"]["phrase errors"] > 0 and tree["false alarms"] > 0
    for name, judged in (("tta", tree), ("@first", tree["against"])):
        for figure, values in judged["figures"].items():
            row = report.rows.find("phrases", name, figure, "test")
            assert row.value == values["score"]
            assert [row.low, row.high] == values["interval"]
            p = tree["differences"][figure]["p"] if name == "tta" else None
            assert row.p == p
        for quantity, value in {**judged["counts"], "false alarms": judged["false alarms"]}.items():
            assert report.rows.value("phrases", name, quantity, "test") == value
    with open(page.parent / "rows.csv") as stream:
        written = [row for row in csv.DictReader(stream) if row["kind"] == "phrases"]
    assert {(row["name"], row["set"]) for row in written} >= {("tta", "test"), ("@oracle", "dev")}
    (recall,) = [
        float(row["value"])
        for row in written
        if (row["name"], row["set"], row["quantity"]) == ("tta", "test", "recall")
    ]
    assert recall == tree["figures"]["recall"]["score"]


def test_table(exp, spec, report, page):
    table = titled(report, "Words of the glossary: test")
    rows = {row["system"]: row for row in rows_of(table)}
    assert list(rows)[:2] == ["first pass", "oracle"]
    for header, quantity in {"B-WER %": "B-WER", "U-WER %": "U-WER", "recall %": "recall"}.items():
        value = report.rows.value("phrases", "tta", quantity, "test")
        assert rows["T-TA"][header] == f"{value:.2f}"
    alarms = report.rows.value("phrases", "tta", "false alarms", "test")
    assert rows["T-TA"]["false alarms"] == str(alarms)
    results = (page.parent / "RESULTS.md").read_text()
    assert "## Words of the glossary: test" in results
    assert f"--words {spec.path}" in results
    assert "Words of the glossary: dev" not in results
    plain = collect_rescoring(exp)
    assert not [row for row in plain.rows.every if row.kind == "phrases"]


def test_browser_has_the_spans_of_every_text(exp, spec, report):
    glossary = spec.load()
    refs = {n.utt: n.ref for n in jsonl.read(exp.parent / "data/test/nbest.jsonl.gz")}
    data = browser_data(report.browsed)
    place = [name for name, _ in data["systems"]].index("tta")
    found = []
    for utt, ref, hyps, choices, _, spans in data["sets"][0]["utts"]:
        assert len(spans) == len(hyps)
        text = hyps[choices[place]][0]
        for kind, side, words in zip(
            (MISSED, FALSE), spans[choices[place]], (ref, text), strict=True
        ):
            for start, end, phrase, wrong in side:
                spoken = " ".join(words.split()[start:end]).lower().replace("thy", "the")
                assert spoken == phrase.partition(" |")[0].lower()
                found += [(utt, kind, phrase)] * wrong
    hyps = kaldi_text.read(exp / "rescore/tta/test.txt")
    wanted = [(row["utt"], row["kind"], row["phrase"]) for row in list_errors(refs, hyps, glossary)]
    assert Counter(found) == Counter(wanted)
    assert {kind for _, kind, _ in found} == {MISSED, FALSE}
    assert {
        len(utt) for utt in browser_data(collect_rescoring(exp).browsed)["sets"][0]["utts"]
    } == {5}


def marks(document: str, line: str) -> list[Counter]:
    """Of each utterance the marks of words in a line, by class and title."""
    lines = re.findall(rf'<dd class="{line}">(.*?)</dd>', document)
    found = (re.findall(r'<mark class="(\w+)" title="([\w ]+: [^"]*)"', text) for text in lines)
    return [Counter(read_mark(*mark) for mark in marked) for marked in found]


def read_mark(kind: str, title: str) -> tuple[str, str]:
    """The class and the phrase of a mark, whose title says the same."""
    verdict, _, phrase = unescape(title).partition(": ")
    assert verdict == {"found": "right", "missed": "missed", "false": "false alarm"}[kind]
    return kind, phrase


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
def test_page_marks_words_where_asked(page, report):
    assert not re.search(r'<mark class="(found|missed|false)" title', dom(page, system="tta"))
    document = dom(page, system="tta", colour="words")
    data = browser_data(report.browsed)
    place = [name for name, _ in data["systems"]].index("tta")
    utts = data["sets"][0]["utts"]
    sides = [utt[5][utt[3][place]] for utt in utts]
    for line, side, wrong in (("ref", 0, "missed"), ("system", 1, "false")):
        wanted = [Counter() for _ in sides]
        for words, spans in zip(wanted, sides, strict=True):
            for start, end, phrase, fault in spans[side]:
                words[wrong if fault else "found", phrase] += end - start
        shown_marks = marks(document, line)
        if line == "system":  # what is missed is marked where it would stand
            missed = [{key for key in words if key[0] == "missed"} for words in shown_marks]
            assert any(missed)
            for words, keys, spans in zip(shown_marks, missed, sides, strict=True):
                assert keys <= {("missed", phrase) for _, _, phrase, fault in spans[0] if fault}
                for key in keys:
                    del words[key]
        assert shown_marks == wanted
    assert '<option value="words">' in document
    assert '<option value="confidence">' not in document


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
def test_page_shows_only_utterances_with_words(page, report):
    data = browser_data(report.browsed)
    place = [name for name, _ in data["systems"]].index("tta")
    sides = {
        utt: [span for side in spans[choices[place]] for span in side]
        for utt, _, _, choices, _, spans in data["sets"][0]["utts"]
    }
    with_words = [utt for utt, spans in sides.items() if spans]
    with_faults = [utt for utt, spans in sides.items() if any(span[3] for span in spans)]
    assert 0 < len(with_faults) < len(with_words) < len(sides)
    for show, wanted in (("words", with_words), ("faults", with_faults)):
        document = dom(page, system="tta", show=show, colour="words")
        assert shown(document) == wanted
        assert count(document) == f"{len(wanted)} of {len(sides)} utterances"


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
def test_page_without_a_glossary_does_not_offer_it(reported):
    document = dom(reported / "report/index.html", colour="words", show="words")
    assert 'data-colour="changes"' in document
    assert (
        "words of the glossary" not in re.search(r'<fieldset id="show">.*?</fieldset>', document)[0]
    )
    assert re.search(r'<label id="colours" hidden', document)


def test_a_report_without_utterances_refuses_a_glossary(exp, spec):
    with pytest.raises(UserError, match=r"names\.txt: a report of kind sts has no rescored"):
        collect(exp, "sts", words=spec)


def test_a_damaged_glossary_is_named(exp, tmp_path, capsys):
    (tmp_path / "g").write_text("said\n...\n")
    assert main(["report", str(exp), "--words", str(tmp_path / "g")]) == 1
    assert f"{tmp_path}/g:2: '...' has no words" in capsys.readouterr().err
