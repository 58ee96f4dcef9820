"""Reports of language models by themselves: what is recognised and read, what the tables say, what
is absent, what the page holds.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from unit.report.conftest import check_layout, collect_lms, rows_of
from unit.report.lm.toys import STYLE, dump, lm_experiment

from lmtools.base.seal import write_json
from lmtools.cli import main
from lmtools.report import write_report
from lmtools.report.drawing import LIGHT
from lmtools.report.experiment import recognise
from lmtools.report.lms import progress
from lmtools.report.models import ordered
from lmtools.report.write import make_pictures, make_tables, page, results


@pytest.fixture(scope="session")
def lms(tmp_path_factory) -> Path:
    """A small complete experiment, shared: tests must not change it."""
    return lm_experiment(
        tmp_path_factory.mktemp("egs") / "gbw", grids=("gates", "output", "context", "pieces")
    )


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """What the report of an experiment with few figures says, and the directory that it is in."""
    exp = lm_experiment(tmp_path_factory.mktemp("egs") / "gbw", grids=("gates", "pieces"))
    text, absent = write_report(exp)
    return text, absent, exp / "report"


@pytest.fixture
def fresh(lms, tmp_path) -> Path:
    """The experiment again, to damage."""
    return Path(shutil.copytree(lms, tmp_path / "gbw/exp", ignore=shutil.ignore_patterns("report")))


def tables(exp: Path) -> dict[str, list[dict[str, str]]]:
    """The rows of each table, by title: cell by header."""
    report = collect_lms(exp, style=STYLE)
    return {table.title: rows_of(table) for table in make_tables(report)}


def corpus(exp: Path, name: str) -> None:
    """Make the experiment one on another corpus."""
    for path in exp.glob("stages/*.json"):
        path.write_text(path.read_text().replace('"wikitext2"', f'"{name}"'))


# What is recognised


def test_language_models_without_lists_are_recognised(lms, exp, tmp_path):
    assert recognise(lms, []) == "lm"
    assert recognise(lms, ["some.jsonl"]) == "rescoring"
    assert recognise(exp, []) == "rescoring"
    assert recognise(tmp_path, []) == "rescoring"  # which says what it misses


def test_what_overrules(lms, exp, capsys):
    assert main(["report", str(lms), "--what", "rescoring"]) == 1
    assert "no N-best lists" in capsys.readouterr().err
    assert main(["report", str(exp), "--what", "lm", "--nbest", "some.jsonl"]) == 1
    assert "some.jsonl: cannot read: No such file" in capsys.readouterr().err
    with pytest.raises(SystemExit) as status:
        main(["report", str(exp), "--what", "other"])
    assert status.value.code == 2


# What is read


def test_models_stand_by_family_then_by_size(lms):
    experiment = collect_lms(lms, style=STYLE)
    assert " ".join([model.name for model in experiment.main]) == (
        "kn5 lstm gcnn elmo-char esulmo-bpe-500"
    )
    assert " ".join([model.shown.label for model in experiment.main]) == (
        "n-gram LSTM GCNN ELMo ESuLMo"
    )
    some = [experiment.models[f"context-{label}"] for label in (13, 4, 49, 7)]
    assert " ".join([model.name for model in ordered(some)]) == (
        "context-4 context-7 context-13 context-49"
    )


# Tables


def test_perplexities_over_different_words_are_warned_of(fresh, lms):
    path = fresh / "ppl/kn5/test.json"
    write_json(json.loads(path.read_text()) | {"oov": 17}, path)
    for exp, warned in ((fresh, ["test"]), (lms, [])):
        notes = make_tables(collect_lms(exp, style=STYLE))[0].notes
        assert [
            note.partition("words of ")[2].split()[0]
            for note in notes
            if note.startswith("Warning")
        ] == warned


# What is absent or damaged


@pytest.mark.parametrize(
    ("path", "said", "tables"),
    [("ppl", "ppl/LM/SET.json: absent", 2), ("stages", "stages/N.json: absent", 3),
     ("lm", "lm/LM/config.yaml: absent", 3), ("ppl/gcnn", "ppl/gcnn: absent, so their", 4)],
)  # fmt: skip
def test_what_is_absent_is_named(fresh, path, said, tables):
    shutil.rmtree(fresh / path)
    report = collect_lms(fresh, style=STYLE)
    every, drawn = make_tables(report), make_pictures(report)
    (line,) = [line for line in report.absent if said in line]
    assert len(every) == tables
    assert f"- {line}" in results(report, every, drawn)
    assert said in page(report, every, (), ())


@pytest.mark.parametrize(
    ("path", "content"),
    [("grids/gates.yaml", "own: gates-glu\n"),
     ("ppl/gcnn/test.json", "{}"),
     ("lm/gcnn/metrics.jsonl", "x\n}\n"), ("lm/gcnn/config.yaml", "facts: {parameters: x}\n")],
)  # fmt: skip
def test_a_damaged_file_is_one_line_and_writes_nothing(fresh, capsys, path, content):
    (fresh / path).write_text(content)
    assert main(["report", str(fresh)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert path in line
    assert ";" in line
    assert not (fresh / "report").exists()


def test_no_directory_is_said(tmp_path, capsys):
    assert main(["report", str(tmp_path / "none"), "--what", "lm"]) == 1
    assert "no such directory" in capsys.readouterr().err


# The page


def test_page_has_no_utterances_and_no_program(written):
    source = (written[2] / "index.html").read_text()
    assert "<script" not in source
    assert "script-src" not in source
    assert (
        "utterance"
        not in source.lower()
        .replace("utterances</a>", "utterance")
        .partition("<main>")[2]
        .partition("</main>")[0]
    )
    for place in ("results", "figures", "tables"):
        assert f'<a href="#{place}">' in source
        assert f'<section id="{place}"' in source
    for path in written[2].glob("*.png"):
        assert f'id="{path.stem}"' in source
        assert f"]({path.name})" in (written[2] / "RESULTS.md").read_text()


def test_hostile_names_are_text(fresh):
    for folder in ("lm", "ppl"):
        (fresh / folder / "gcnn").rename(fresh / folder / "<i>$\\frac{$")
    report = collect_lms(fresh, title="<b>$x$ & *y*", style=STYLE)
    every, (picture, *drawn) = make_tables(report), make_pictures(report)
    source = page(report, every, (picture,), (picture.png(LIGHT),))
    assert "<b>$" not in source
    assert "<i>" not in source
    assert "&lt;b>$x$ & \\*y" in results(report, every, drawn)


def test_experiment_of_perplexities_alone(tmp_path):
    dump({"kind": "perplexity", "word_ppl": 12.5}, tmp_path / "exp/ppl/gcnn/test.json")
    text, absent = write_report(tmp_path / "exp")
    assert "12.50" in text
    assert len(absent) == 3


def test_a_base_that_is_a_run_too_stays_in_the_main_table_and_what_was_set_aside_does_not(tmp_path):
    for name in ("gcnn", "gates-tanh", "gcnn.1", "gates-mine", "esulmo-bpe-500", "gcnn.2"):
        (tmp_path / "lm" / name).mkdir(parents=True)
        (tmp_path / "lm" / name / "config.yaml").write_text("model: gcnn\narch: {}\n")
    (tmp_path / "grids").mkdir()
    (tmp_path / "grids/gates.yaml").write_text(
        "title: Gates\nfigure: curves\nruns: {GLU: gcnn, tanh: gates-tanh}\nown: [gates-tanh]\n"
    )
    (tmp_path / "grids/pieces.yaml").write_text(
        "title: Pieces\nfigure: line\nx: ids\nruns: {5: esulmo-bpe-500}\n"
    )
    (tmp_path / "lm/gcnn.2/set_aside.txt").write_text("held a training of other settings or data\n")
    experiment = collect_lms(tmp_path, style=STYLE)
    # a user's own model may be called as a run or as what was set aside would be
    own = {"gcnn", "gcnn.1", "gates-mine", "esulmo-bpe-500"}
    assert {model.name for model in experiment.main} == own
    assert "gcnn.2" not in experiment.models


def test_progress_takes_time_from_the_training_and_labels_keep_apart(tmp_path):
    report = collect_lms(lm_experiment(tmp_path / "gbw", grids=()), style=STYLE)
    model = report.models["gcnn"]
    points = progress(model)
    assert points.shape == (10, 3)
    seconds = {line["step"]: line["seconds"] for line in model.lines if "seconds" in line}
    assert np.allclose(points[:, 1], [seconds[step] for step in points[:, 0]])
    one, two = make_pictures(report)
    assert (one.name, two.name) == ("learning-ppl", "learning-two-way-ppl")
    check_layout(one)
    check_layout(two)
