"""Tables of papers beside ours, and what is read off their figures (utils/papers)."""

import re
from pathlib import Path

import numpy as np
import paper_tables as tables
import pytest
import quoted
import yaml
from matplotlib.figure import Figure
from unit.report.conftest import collect_rescoring, dump

from lmtools.base.errors import UserError
from lmtools.report import write_report
from lmtools.report.drawing import LIGHT, Picture
from lmtools.report.style import Names
from lmtools.report.table import html, markdown, plain

CONF = Path(__file__).parents[4] / "egs/librispeech/conf/report.yaml"
TABLE = {
    "paper": "tta",
    "table": "1",
    "title": "WER",
    "corpus": "LibriSpeech",
    "theirs": "Four sets.",
    "same": ["full"],
    "beside": {
        "mini": {"test clean": ["score", "test"]},
        "full": {"test other": ["score", "test"]},
    },
    "columns": ["method", "ours", "test clean", "test other"],
    "rows": [
        ["first pass", "@first", "4.31", "13.14"],
        ["BERT", "bert", "3.97?", ""],
        ["T-TA", "none-such tta", "1,234", "12.38"],
    ],
    "uncertain": "What one cannot read.",
}
READING = {"paper": "gcnn", "figure": 4, "beside": "line", "text": "It falls.", "x": [30]}


@pytest.fixture
def read(tmp_path):
    """What a YAML file with these entries says."""

    def made(tables=(), readings=()):
        path, tree = tmp_path / "papers.yaml", {"tables": [*tables], "readings": [*readings]}
        path.write_text(yaml.safe_dump(tree, sort_keys=False))
        return quoted.read_papers(path)

    return made


@pytest.fixture
def measured(fresh, undrawn):
    """What was measured in an experiment on a corpus, by its report."""

    def made(corpus=""):
        stage = {"stage": 6, "command": "./run.sh", "options": {"corpus": corpus}}
        dump(stage, fresh / "stages/6.json")
        write_report(fresh)
        return tables.Measured(fresh, CONF)

    return made


def test_every_row_of_the_paper_stands_beside_ours(measured, read):
    ours = measured("mini")
    (table,) = tables.paper_tables(ours, read([TABLE])[0])
    first, tta = (f"{ours.rows.value('system', n, 'wer', 'test'):.2f}" for n in ("@first", "tta"))
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
    assert table.quoted == {2, 4}
    notes = "\n".join(table.notes)
    assert "Shin et al. 2020" in notes and "Table 1. Four sets." in notes
    assert "test: 24 utterances" in notes and tables.ORDER in notes
    assert "Uncertain (?): What one cannot read." in notes
    for text in (markdown(table), plain(table)):
        assert "[4.31]" in text and "[3.97?]" in text and "[-]" not in text
        assert not re.search(rf"\[{first}", text)
    assert re.search(r'<td class="n quoted"[^>]*>\[4.31\]</td>', html(table))
    assert re.search(rf'<td class="n"[^>]*>{first}</td>', html(table))


def test_the_papers_corpus_itself_compares_and_others_have_no_table(measured, read):
    (table,) = tables.paper_tables(measured("full"), read([TABLE])[0])
    assert table.header[-1] == "here: test" and tables.ORDER not in table.notes
    assert not list(tables.paper_tables(measured("swbd"), read([TABLE])[0]))
    lost = TABLE | {"rows": [["BERT", "bert", "3.97", "12.46"]]}
    assert not list(tables.paper_tables(measured("mini"), read([lost])[0]))


def test_times_stand_in_times_of_a_row(measured, read):
    rows = [["uniLM", "causal", "0.358", "1.9B"], ["T-TA", "tta", "0.179?", ""]]
    beside = {"any": {"time": ["time"], "parameters": ["parameters"]}}
    timed = TABLE | {"columns": ["LM", "ours", "time", "parameters"], "rows": rows}
    ours = measured()
    (table,) = tables.paper_tables(
        ours, read([timed | {"beside": beside, "ratio": {"time": "uniLM"}}])[0]
    )
    ratio = ours.find("tta", ["time"]) / ours.find("causal", ["time"])
    assert [row[2:4] for row in table.rows] == [("1.00 x", "1.00 x"), ("0.50 x", f"{ratio:.2f} x")]


def test_what_is_read_off_a_figure_stands_on_ours(read):
    times = {"of": "tta", "words": 20, "by": {"reranking": 6.35}}
    _, readings = read(
        (),
        [
            READING | {"uncertain": "its points."},
            READING | {"y": [6, 61], "same": ["full"], "figure": 5},  # one above the panel
            READING | {"x": [], "times": times},
        ],
    )

    def draw(theme):
        figure = Figure()
        axes = figure.subplots()
        axes.set_title("reranking", loc=loc)
        axes.plot([10, 40], [2, 8], label="T-TA")
        return figure

    for name, dashed in (("mini", [30, 30]), ("full", [30, 30, 6])):
        loc = "left" if name == "full" else "center"
        pictures = [Picture(one, "Ours.", "", draw) for one in ("lines", "line-1")]
        other, picture = quoted.add_readings(pictures, readings, [name], Names())
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
        ({"paper": "none"}, "papers.yaml: tables 0: paper 'none' is unknown; known: tta, gcnn"),
        ({"tabel": 1}, "papers.yaml: tables 0: unknown setting 'tabel'; did you mean table?"),
        ({"rows": [["a"]]}, "papers.yaml: tables 0: rows: 'a' has 1 cells, not 4"),
    ],
)
def test_what_is_wrong_is_one_line(read, change, message):
    with pytest.raises(UserError) as error:
        read([TABLE | change])
    assert message in str(error.value) and "\n" not in str(error.value)


def test_the_papers_of_recipes_are_sound():
    paths = sorted(CONF.parents[2].glob("*/conf/papers.yaml"))
    assert len(paths) == 4 and all(quoted.read_papers(path)[0] for path in paths)


def test_manifests_of_other_scripts_stand_behind_those_of_run_sh(fresh):
    for name in ("paper-10", "paper-4", "10"):
        command = "./run_paper.sh" if "-" in name else "./run.sh"
        dump({"stage": 4, "command": f"{command} --nj 2"}, fresh / f"stages/{name}.json")
    dump({"stage": 4, "command": "./run_paper.sh"}, fresh / "stages/paper-4.json")
    experiment = collect_rescoring(fresh)
    said = [stage["command"] for stage in experiment.stages][-3:]
    assert said == ["./run.sh --nj 2", "./run_paper.sh", "./run_paper.sh --nj 2"]
    assert quoted.read_options(fresh) == ["mini"]
    made = "Made by `./run.sh --nj 2`, then `./run_paper.sh --nj 2`, then `lmtools report`"
    assert any(made in line for line in experiment.provenance())
