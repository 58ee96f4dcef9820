"""Tables of papers beside ours, and what is read off their figures."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from matplotlib.figure import Figure
from unit.report.conftest import collect_lms, collect_rescoring, collect_sts, dump
from unit.report.lm.toys import MAIN, lm_experiment
from unit.report.sts.toys import sts_experiment

from lmtools.base.errors import UserError
from lmtools.report.figures.readings import add_readings
from lmtools.report.page.drawing import LIGHT, Picture
from lmtools.report.page.table import html, markdown, plain
from lmtools.report.style import load_style
from lmtools.report.tables.papers import ORDER, amount, paper_tables

REPO = Path(__file__).parents[4]
TABLE = {
    "paper": "tta",
    "table": 1,
    "title": "WER",
    "corpus": "LibriSpeech",
    "theirs": "Four sets.",
    "same": ["full"],
    "beside": {"mini": {"test clean": "score test"}, "full": {"test other": "score test"}},
    "rows": "method | ours | test clean | test other\n"
    "first pass | @first | 4.31 | 13.14\n"
    "BERT | bert | 3.97? | -\n"
    "T-TA | none-such tta | 1,234 | 12.38\n",
    "uncertain": "What one cannot read.",
}
READING = {"paper": "gcnn", "figure": 4, "beside": "line", "text": "It falls.", "x": [30]}


@pytest.fixture
def style(tmp_path):
    """The style of a YAML file with these entries."""

    def made(papers=(), readings=()):
        path = tmp_path / "report.yaml"
        tree = {"papers": list(papers), "readings": list(readings)}
        path.write_text(yaml.safe_dump(tree, sort_keys=False))
        return load_style(path)

    return made


def corpus(exp, name: str):
    """The experiment, as made by a run of its recipe on a corpus."""
    dump({"stage": 6, "command": "./run.sh", "options": {"corpus": name}}, exp / "stages/6.json")
    return exp


def test_every_row_of_the_paper_stands_beside_ours(fresh, style):
    experiment = collect_rescoring(corpus(fresh, "mini"), style=style([TABLE]))
    (table,) = paper_tables(experiment)
    first, tta = (
        f"{experiment.lists.sets[1].results[name].score:.2f}" for name in ("@first", "tta")
    )
    assert experiment.lists.sets[1].sample.name == "test"
    assert table.header == (
        "method",
        "here",
        "T-TA Table 1, LibriSpeech: test clean",
        "here: test",
        "T-TA Table 1, LibriSpeech: test other",
    )
    assert table.rows == (
        ("first pass", "first pass", "4.31", first, "13.14"),
        ("BERT", "-", "3.97?", "-", "-"),
        ("T-TA", "T-TA", "1,234", tta, "12.38"),
    )
    assert table.quoted == {2, 4} and table.part == "papers"
    notes = "\n".join(table.notes)
    assert "Shin et al. 2020" in notes and "Table 1. Four sets." in notes
    assert "test: 24 utterances" in notes and ORDER in notes
    assert "Uncertain (?): What one cannot read." in notes


def test_the_papers_corpus_itself_compares(fresh, style):
    (table,) = paper_tables(collect_rescoring(corpus(fresh, "full"), style=style([TABLE])))
    assert table.header[-1] == "here: test" and ORDER not in table.notes


def test_no_table_beside_what_it_does_not_speak_of(fresh, style):
    assert not list(paper_tables(collect_rescoring(corpus(fresh, "swbd"), style=style([TABLE]))))
    shutil.rmtree(fresh / "stages")
    assert not list(paper_tables(collect_rescoring(fresh, style=style([TABLE]))))


def test_no_table_without_a_row_of_ours(fresh, style):
    lost = TABLE | {"rows": "method | ours | test clean | test other\nBERT | bert | 3.97 | 12.46\n"}
    assert not list(paper_tables(collect_rescoring(corpus(fresh, "mini"), style=style([lost]))))


def test_what_a_paper_reports_looks_otherwise(fresh, style):
    (table,) = paper_tables(collect_rescoring(corpus(fresh, "mini"), style=style([TABLE])))
    for text in (markdown(table), plain(table)):
        assert "[4.31]" in text and "[3.97?]" in text and "[-]" not in text
        assert not re.search(rf"\[{table.rows[0][3]}", text)
    assert '<td class="n quoted">[4.31]</td>' in html(table)
    assert f'<td class="n">{table.rows[0][3]}</td>' in html(table)


def test_times_stand_in_times_of_a_row(fresh, style):
    rows = "LM | ours | time | parameters\nuniLM | causal | 0.358 | 1.9B\nT-TA | tta | 0.179? | -\n"
    beside = {"mini": {"time": "time", "parameters": "parameters"}}
    timed = TABLE | {"rows": rows, "beside": beside, "ratio": {"time": "uniLM"}}
    experiment = collect_rescoring(corpus(fresh, "mini"), style=style([timed]))
    (table,) = paper_tables(experiment)
    ratio = experiment.quantity("time", "tta", "") / experiment.quantity("time", "causal", "")
    assert [row[2:4] for row in table.rows] == [("1.00 x", "1.00 x"), ("0.50 x", f"{ratio:.2f} x")]


@pytest.mark.parametrize(
    ("value", "said"), [(1.94e9, "1.94B"), (946_000, "946k"), (86, "86"), (None, "-")]
)
def test_numbers_of_parameters_are_short(value, said):
    assert amount(value) == said


def test_language_models_and_their_speeds(tmp_path, style):
    conf = load_style(REPO / "egs/gbw/conf/report.yaml")
    experiment = collect_lms(lm_experiment(tmp_path, corpus="mini"), style=conf)
    second, speeds, two_way = paper_tables(experiment)
    rows = {row[0]: row for row in second.rows}
    assert len(rows) == 11 and rows["BIG GLSTM-G4"][1:] == (
        "-", "Kuchaiev and Ginsburg 2017", "23.3?", "-", "8 GPUs",
    )  # fmt: skip
    assert rows["Interpolated KN 5-gram"][1:5:3] == ("KN-5", f"{MAIN['kn5'][-1]:.1f}")
    assert rows["LSTM-2048"][1] == "LSTM"  # of a mini corpus
    assert [row[3] for row in speeds.rows] == ["310", "402", "905"]  # on this CPU
    assert "here: throughput, cpu" in speeds.header
    assert not any("cuda" in header for header in speeds.header)
    named = {row[0]: row for row in two_way.rows}
    assert named["ESuLMo BPE 500"][1] == "ESuLMo bpe-500" and "12.1M" in named["ESuLMo BPE 500"]


def test_similarity(tmp_path):
    conf = load_style(REPO / "egs/stsb/conf/report.yaml")
    experiment = collect_sts(sts_experiment(tmp_path, "stsb"), style=conf)
    (table,) = paper_tables(experiment)
    rows = {row[0]: row for row in table.rows}
    ours = f"{experiment.quantity('context', 'tta', 'test'):.2f}"
    assert rows["T-TA"][1] == "T-TA" and rows["T-TA"][6:8] == ("62.27", ours)
    assert rows["biLM, intact input"][1] == "biLM intact" and rows["BERT"][1] == "-"
    assert ORDER not in table.notes


def test_what_is_read_off_a_figure_stands_on_ours(fresh, style):
    times = {"of": "tta", "words": 20, "by": {"reranking": 6.35}}
    readings = [
        READING | {"uncertain": "its points."},
        READING | {"y": [6, 61], "same": ["full"], "figure": 5},  # one above the panel
        READING | {"x": [], "times": times},
    ]

    def draw(theme):
        figure = Figure()
        axes = figure.subplots()
        axes.set_title("reranking", loc=loc)
        axes.plot([10, 40], [2, 8], label="T-TA")
        return figure

    for name, dashed in (("mini", [30, 30]), ("full", [30, 30, 6])):
        experiment = collect_rescoring(corpus(fresh, name), style=style([], readings))
        loc = "left" if name == "full" else "center"
        other, picture = add_readings(
            experiment, [Picture(one, "Ours.", "", draw) for one in ("lines", "line-1")]
        )
        assert other.caption == "Ours."
        assert "[GCNN, Figure 4: It falls. Uncertain: its points.]" in picture.caption
        _, *levels, between, end = picture.draw(LIGHT).axes[0].get_lines()
        assert [line.get_xydata()[0].max() for line in levels] == dashed
        own = np.exp(np.log(2) + np.log(4) / 3)
        assert between.get_xydata() == pytest.approx(np.array([(20, own), (20, 6.35 * own)]))
        assert end.get_xydata() == pytest.approx(np.array([(20, 6.35 * own)]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"paper": "none"}, ":2: papers: unknown paper 'none'; known: tta, gcnn"),
        ({"tabel": 1}, ": papers: unknown key 'tabel'; known: paper"),
        ({"title": None}, ":2: papers: 'title' is null"),
        ({"rows": "method | none\n"}, ":14: rows: expected `HEADING | ours | COLUMN"),
        ({"rows": "a | ours | b\nc | d\n"}, ": rows: 2 cells; the header has 3"),
        ({"beside": {"mini": {"b": "score test"}}}, ": no column 'b'; the table has test clean"),
        ({"beside": {"mini": {"test clean": "bleu"}}}, ": beside: 'bleu' is not `QUANTITY"),
        ({"beside": {"mini": {"test clean": "score test x"}}}, ": beside: 'x' has not one {}"),
        ({"ratio": {"test clean": "CE"}}, ": test clean: no row 'CE' with a figure"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(style, change, message):
    with pytest.raises(UserError) as error:
        style([TABLE | change])
    assert message in str(error.value) and "\n" not in str(error.value)
    assert re.search(r"report\.yaml:\d+: ", str(error.value))


def test_a_reading_of_nothing_is_refused(style):
    with pytest.raises(UserError, match=r"report\.yaml:3: readings: 'x\[0\]' is 'a'"):
        style([], [READING | {"x": ["a"]}])


def test_manifests_of_other_scripts_stand_behind_those_of_run_sh(fresh):
    for name in ("paper-10", "paper-4", "10"):
        command = "./run_paper.sh" if "-" in name else "./run.sh"
        dump({"stage": 4, "command": f"{command} --nj 2"}, fresh / f"stages/{name}.json")
    dump({"stage": 4, "command": "./run_paper.sh"}, fresh / "stages/paper-4.json")
    experiment = collect_rescoring(fresh)
    said = [stage["command"] for stage in experiment.stages][-3:]
    assert said == ["./run.sh --nj 2", "./run_paper.sh", "./run_paper.sh --nj 2"]
    assert experiment.options == {"mini"}
    made = "Made by `./run.sh --nj 2`, then `./run_paper.sh --nj 2`, then `lmtools report`"
    assert any(made in line for line in experiment.provenance())
