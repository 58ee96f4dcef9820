"""Reports of language models by themselves: what is recognised and read, what the tables say, what
is absent, what the page holds.
"""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from unit.report.conftest import collect_lms, pictured, rows_of, titled
from unit.report.lm.toys import CONTEXT, GATES, MAIN, SPEEDS, STYLE, WORDS, dump, lm_experiment

from lmtools.base.seal import write_json
from lmtools.cli import main
from lmtools.report import write_report
from lmtools.report.experiment import recognise
from lmtools.report.names import Names
from lmtools.report.page.drawing import LIGHT
from lmtools.report.page.html import page
from lmtools.report.parts.models import Vocabulary, ordered
from lmtools.report.write import make_pictures, make_tables, results


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


def test_parameters_and_vocabularies_are_those_that_models_say(lms):
    models = collect_lms(lms, style=STYLE).models
    assert {name: models[name].parameters for name in MAIN} == {
        name: parameters for name, (_, _, parameters, _) in MAIN.items()
    }
    assert models["gcnn"].vocabulary == Vocabulary("word", WORDS)
    assert models["esulmo-bpe-500"].vocabulary == Vocabulary("bpe", 500, WORDS)


def test_a_model_of_an_older_version_says_less(fresh):
    path = fresh / "lm/gcnn/config.yaml"
    tree = yaml.safe_load(path.read_text())
    del tree["facts"]
    path.write_text(yaml.safe_dump(tree))
    (fresh / "bench/lm.json").unlink()
    found = collect_lms(fresh, style=STYLE)
    assert (found.models["gcnn"].parameters, found.models["gcnn"].vocabulary) == (None, None)
    (line,) = [line for line in found.absent if "older version" in line]
    assert line.startswith(f"{fresh}/lm/gcnn: config.yaml is of an older version")


@pytest.mark.parametrize(
    ("name", "title"),
    [("kn5", "KN-5"), ("gcnn-14b", "GCNN-14B"), ("lstm-2048-2", "LSTM-2048-2"), ("lstm", "LSTM"),
    ("esulmo-bpe-500", "ESuLMo bpe-500"),
     ("elmo-char", "ELMo char"), ("mine-2", "mine-2"), ("gcnn-wide", "gcnn-wide")],
)  # fmt: skip
def test_names_in_print(name, title):
    assert Names(STYLE).label(name) == title


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


def test_perplexities_are_those_measured(lms):
    found = tables(lms)
    rows = found["Perplexity: gbw (wikitext2)"] + found["Two-way perplexity: gbw (wikitext2)"]
    for row, (name, (_, _, parameters, ppl)) in zip(rows, MAIN.items(), strict=True):
        assert row["LM"] == Names(STYLE).label(name)
        assert row["parameters"] == f"{parameters:,}"
        assert float(row.get("test ppl", row.get("test two-way ppl"))) == pytest.approx(
            ppl, abs=0.05
        )
        assert float(row.get("valid ppl", row.get("valid two-way ppl"))) == pytest.approx(
            1.06 * ppl, abs=0.05
        )
    words = f"{WORDS:,} words"
    assert [row["vocabulary"] for row in rows[2:]] == [
        words,
        f"86 characters, {words}",
        f"500 BPE pieces, {words}",
    ]
    assert "paper's test ppl" not in rows[0]


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


def test_two_way_perplexities_stand_apart(written):
    results = (written[2] / "RESULTS.md").read_text()
    first, second = results.split("## Two-way perplexity")
    assert "ELMo char" not in first
    assert "it compares only with its like" in second.partition("\n## ")[0]


def test_speeds_are_compared_with_an_lstm_of_their_kind(lms):
    found = tables(lms)
    trained, random = (
        found[f"Throughput and responsiveness{kind}"] for kind in ("", " of random models")
    )
    assert [row["LM"] for row in random] == ["LSTM-2048", "GCNN-9", "GCNN-8B"]
    assert "GCNN full" in [row["LM"] for row in trained]
    report = collect_lms(lms, style=STYLE)
    names = {Names(STYLE).label(name): name for name in SPEEDS}
    names |= {
        f"{model} {kind}": f"output-{model.lower()}-{kind}"
        for model in ("GCNN", "LSTM")
        for kind in ("full", "adaptive")
    }
    for title, base in (
        ("Throughput and responsiveness", "lstm"),
        ("Throughput and responsiveness of random models", "lstm-2048"),
    ):
        table = titled(report, title)
        places = [i for i, header in enumerate(table.header) if header == "x LSTM"]
        for row in table.rows:
            for place, mine, theirs in zip(
                places, SPEEDS[names[row[0]]][1:], SPEEDS[base][1:], strict=True
            ):
                assert float(row[place]) == pytest.approx(mine / theirs, rel=0.006)


def test_grids_hold_their_runs(lms):
    found = tables(lms)
    assert [row["run"] for row in found["Gates"]] == list(GATES)
    assert [float(row["test ppl"]) for row in found["Gates"]] == list(GATES.values())
    assert [row["words that a state sees"] for row in found["Context size"]] == [
        str(value) for value in CONTEXT
    ]
    assert [row["ids of the piece vocabulary"] for row in found["Pieces that spell words"]][
        -2:
    ] == ["2,000", "-"]
    lines = [
        json.loads(line) for line in (lms / "lm/gates-relu/metrics.jsonl").read_text().splitlines()
    ]
    last = [line for line in lines if "seconds" in line][-1]
    assert found["Gates"][2]["training seconds"] == f"{last['seconds']:,.0f}"
    assert found["Gates"][2]["training tokens/s"] == f"{last['tokens'] / last['seconds']:,.0f}"


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
    report = collect_lms(fresh, style=STYLE)
    picture = pictured(report, "grid-best")
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
    (fresh / "grids/mixed.yaml").write_text(
        yaml.safe_dump({"title": "Mixed", "runs": {"one": "gcnn", "two": "elmo-char"}})
    )
    report = collect_lms(fresh, style=STYLE)
    table = titled(report, "Mixed")
    assert [row[1] for row in table.rows] == ["perplexity", "two-way perplexity"]
    assert not table.best


# What is absent or damaged


@pytest.mark.parametrize(
    ("path", "said", "tables"),
    [("ppl", "ppl/LM/SET.json: absent", 8), ("grids", "grids/GRID.yaml: absent", 6),
    ("bench", "bench/lm.json: absent", 8),
     ("stages", "stages/N.json: absent", 9), ("lm", "lm/LM/config.yaml: absent", 9),
     ("ppl/gcnn", "ppl/gcnn: absent, so their perplexity", 10)],
)  # fmt: skip
def test_what_is_absent_is_named(fresh, path, said, tables):
    shutil.rmtree(fresh / path)
    report = collect_lms(fresh, style=STYLE)
    every, drawn = make_tables(report), make_pictures(report)
    (line,) = [line for line in report.absent if said in line]
    assert sum(table.part != "papers" for table in every) == tables
    assert f"- {line}" in results(report, every, drawn)
    assert said in page(report, every, (), ())


def test_runs_that_are_not_there_are_named(fresh):
    for folder in ("lm", "ppl"):
        shutil.rmtree(fresh / folder / "gates-relu")
    (line,) = [line for line in collect_lms(fresh, style=STYLE).absent if "gates.yaml" in line]
    assert "gates-relu: absent" in line
    assert [row["run"] for row in tables(fresh)["Gates"]] == [
        label for label in GATES if label != "ReLU"
    ]


@pytest.mark.parametrize(
    ("path", "content"),
    [("grids/gates.yaml", "title: Gates\n"), ("grids/gates.yaml", "figure: pie\nruns: {a: gcnn}\n"),
    ("bench/lm.json", "{}"),
     ("grids/gates.yaml", "figure: line\nx: x\nat: {a: far}\nruns: {a: gcnn}\n"),
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
    for place in ("results", "grids", "figures", "tables"):
        assert f'<a href="#{place}">' in source
        assert f'<section id="{place}"' in source
    for path in written[2].glob("*.png"):
        assert f'id="{path.stem}"' in source
        assert f"]({path.name})" in (written[2] / "RESULTS.md").read_text()


def test_verb_prints_the_main_tables(written):
    text, absent, _ = written
    assert text.startswith("Perplexity: gbw (wikitext2)\nLM ")
    assert "Throughput and responsiveness\n" in text
    assert "Gates" not in text
    assert absent == ()


def test_hostile_names_are_text(fresh):
    (fresh / "grids/bad.yaml").write_text(
        yaml.safe_dump({"title": "<b>$x$ & *y*", "runs": {"<i>|": "gcnn", "$\\frac{$": "lstm"}})
    )
    report = collect_lms(fresh, style=STYLE)
    every, drawn = make_tables(report), make_pictures(report)
    (picture,) = [one for one in drawn if one.name == "grid-bad"]
    source = page(report, every, (picture,), (picture.png(LIGHT),))
    assert "<b>$" not in source
    assert "<i>" not in source
    assert "&lt;b>$x$ & \\*y" in results(report, every, drawn)


def test_experiment_of_perplexities_alone(tmp_path):
    dump({"kind": "perplexity", "word_ppl": 12.5}, tmp_path / "exp/ppl/gcnn/test.json")
    text, absent = write_report(tmp_path / "exp")
    assert "12.50" in text
    assert len(absent) == 5


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
    assert {label for grid in experiment.grids for label in grid.runs} == {"GLU", "tanh", "5"}
    assert "gcnn.2" not in experiment.models
