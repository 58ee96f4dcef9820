"""What the tables say, against the measurements and against jiwer."""

import json
import re
from dataclasses import replace
from html import unescape

import pytest
from unit.report.conftest import collect_rescoring, experiment, hash_of, rows_of, titled

from lmtools.base.seal import write_json
from lmtools.formats import jsonl, kaldi_text
from lmtools.report.page import page
from lmtools.report.rescoring_tables import main_table, main_tables, scored_tables, span
from lmtools.report.rows import rows_of_set
from lmtools.report.table import NONE, decimal, probability
from lmtools.report.write import make_pictures, make_tables, results
from lmtools.version import __version__


@pytest.fixture(scope="module")
def report(exp):
    return collect_rescoring(exp, command="lmtools report exp")


def column(table, name):
    """Cells of a column by the first cell of their rows."""
    place = table.header.index(name)
    return {row[0]: row[place] for row in table.rows}


def test_all_tables_are_there(report):
    assert [table.title for table in make_tables(report)] == [
        "WER after rescoring: test",
        "Weights",
        "Oracle WER % by list depth",
        "WER % by list depth: test",
        "Perplexity beside WER %",
        "WER % by utterance length: test",
        "Training",
        "How the time divides",
    ]


def test_the_report_says_once_what_made_it(report):
    """Neither a table nor a figure says it again."""
    every = make_tables(report)
    said = [
        "Corpus made-up (mini); test: 24 utterances, ",
        "; weights tuned on dev: 12 utterances, ",
        "metric:wer|",
        "`./run.sh --corpus mini`, then `lmtools report exp`",
        f"tta {hash_of('tta'):064x}"[:12],
        "training seed 1; bootstrap of 10,000 resamples, seed 1",
        f"lmtools {__version__}.",
    ]
    written = results(report, every, make_pictures(report))
    shown = unescape(re.sub("<.*?>", "`", page(report, every, (), ())))
    assert [written.count(one) for one in said] == [1] * len(said)
    assert [shown.count(one) for one in said] == [1] * len(said)


def test_main_table(report):
    (table,) = main_tables(report)
    dev, test = report.lists.sets
    assert [row[0] for row in table.rows][:4] == [
        "first pass",
        "oracle",
        "first pass, tuned",
        "n-gram",
    ]
    assert column(table, "test WER %")["T-TA"] == f"{test.results['tta'].score:.2f}"
    assert column(table, "dev WER %")["T-TA"] == f"{dev.results['tta'].score:.2f}"
    errors = [int(column(table, name)["T-TA"]) for name in ("sub", "del", "ins")]
    words = sum(
        len(ref.split()) for ref in kaldi_text.read(test.sample.path.parent / "text").values()
    )
    assert 100 * sum(errors) / words == pytest.approx(test.results["tta"].score)
    first, tta = test.results["@first"].score, test.results["tta"].score
    assert column(table, "change")["T-TA"] == f"{tta - first:+.2f}"
    assert column(table, "relative")["T-TA"] == f"{100 * (tta - first) / first:+.1f}%"
    low, high = map(float, column(table, "95% CI")["T-TA"].split("-"))
    assert low < tta < high
    assert column(table, "p (MAPSSWE)")["T-TA"] == probability(test.results["tta"].pairs.p)
    assert set(column(table, "p (bootstrap)").values()) >= {"-"}
    assert " ".join(
        [column(table, name)["oracle"] for name in ("p (MAPSSWE)", "p (bootstrap)")]
    ) == ("- -")


def test_systems_are_compared_with_the_tuned_first_pass(report):
    (table,) = main_tables(report)
    texts = {name: test.texts for name, test in report.lists.sets[1].results.items()}
    found = report.lists.sets[1].refs.compare(texts["tta"], texts["first-pass"]).p
    shown = column(table, "p (tuned)")
    assert shown["T-TA"] == probability(found) != "-"
    assert {shown[name] for name in ("first pass", "oracle", "first pass, tuned")} == {"-"}
    assert any("with tuned weights and no LM" in note for note in table.notes)


def test_the_best_system_is_stressed_and_never_the_oracle(report):
    (table,) = main_tables(report)
    for one, place in zip(report.lists.sets, (1, 2), strict=True):
        scores = [result.score for name, result in one.results.items() if name != "@oracle"]
        (row,) = [i for i, j in table.best if j == place]
        assert table.rows[row][0] != "oracle"
        assert table.rows[row][place] == decimal(min(scores))


def test_only_dev_is_judged_where_there_is_nothing_else(exp):
    report = collect_rescoring(exp, nbests=[exp.parent / "data/dev/nbest.jsonl.gz"])
    (table,) = main_tables(report)
    assert table.title.endswith(": dev")
    assert table.header[:3] == ("system", "dev WER %", "95% CI")


def test_weights_stand_under_their_features(report):
    table = titled(report, "Weights")
    assert table.header == ("system", "am", "lm", "words", "ngram", "causal", "masked", "tta")
    assert column(table, "am")["T-TA"] == "1"
    assert float(column(table, "tta")["T-TA"]) == pytest.approx(
        report.lists.systems["tta"].weights.features["tta"], rel=1e-3
    )
    assert column(table, "tta")["n-gram"] == "-"
    assert not [note for note in table.notes if "Warning" in note]


def test_texts_that_the_weights_do_not_choose_are_a_warning(fresh):
    path = fresh / "tune/tta/weights.json"
    tree = json.loads(path.read_text())
    tree["dev"]["wer"] += 1
    tree["features"]["tta"] = 0.0
    write_json(tree, path)
    warnings = [
        note.split(":")[1]
        for note in titled(collect_rescoring(fresh), "Weights").notes
        if note.startswith("Warning")
    ]
    assert warnings == [" T-TA on dev", " T-TA on test"]


def test_oracle_by_depth(report):
    table = titled(report, "Oracle")
    dev, test = report.lists.sets
    assert table.rows[1] == (
        "test",
        *(f"{test.oracle[int(depth) - 1]:.2f}" for depth in table.header[1:]),
    )
    assert column(table, "1") == {
        one.sample.name: f"{one.results['@first'].score:.2f}" for one in (dev, test)
    }


def test_systems_by_depth_end_where_rescoring_did(report):
    table = titled(report, "WER % by list depth")
    (main,) = main_tables(report)
    names = [
        "oracle",
        "first pass, tuned",
        "n-gram",
        "uniLM (causal)",
        "biLM (masked)",
        "T-TA",
        "T-TA + n-gram",
        "n-gram + uniLM + biLM + T-TA",
    ]
    last = column(table, table.header[-1])
    assert list(last) == names
    assert last == {
        name: score for name, score in column(main, "test WER %").items() if name in names
    }
    assert set(column(table, "1").values()) == {column(main, "test WER %")["first pass"]}


def test_systems_without_scores_have_no_depths(fresh):
    (fresh / "score/ngram/test.scores").unlink()
    assert list(column(titled(collect_rescoring(fresh), "WER % by list depth"), "1")) == [
        "oracle", "first pass, tuned", "uniLM (causal)", "biLM (masked)", "T-TA",
    ]  # fmt: skip


def test_perplexities_stand_beside_the_score_of_their_model(report):
    table = titled(report, "Perplexity")
    rows = {(row[0], row[1]): row for row in table.rows}
    assert rows["test", "T-TA"][2] == "pseudo-perplexity"
    assert rows["test", "T-TA"][-1] == f"{report.lists.sets[1].results['tta'].score:.2f}"
    assert any("</s> is predicted" in note for note in table.notes)


def test_time_divides_into_the_whole(report):
    table = titled(report, "How the time")
    seconds = [float(row[2]) for row in table.rows]
    assert sum(seconds[:-1]) == pytest.approx(seconds[-1])
    assert sum(float(row[3].rstrip("%")) for row in table.rows[:-1]) == pytest.approx(100, abs=0.3)
    assert "Not finished when this was written: stage 6 (report)." in table.notes


def test_several_sets(fresh):
    """Two test sets, and a part of dev that the weights were not tuned on alone."""
    data = fresh.parent / "data"
    dev, test = (list(jsonl.read(data / name / "nbest.jsonl.gz")) for name in ("dev", "test"))
    parts = {"dev-a": dev[:6], "test-a": test[:12], "test-b": test[12:]}
    for name, nbests in parts.items():
        jsonl.write(nbests, data / name / "nbest.jsonl")
        for system in fresh.glob("rescore/*"):
            texts = kaldi_text.read(system / f"{name[:-2]}.txt")
            kaldi_text.write(
                {nbest.utt: texts[nbest.utt] for nbest in nbests}, system / f"{name}.txt"
            )
    (data / "test/nbest.jsonl.gz").unlink()
    report = collect_rescoring(fresh)
    first, *others = main_tables(report)
    assert first.header == ("system", "dev", "dev-a", "test-a", "test-b")
    assert first.notes == ("Weights were tuned on dev, dev-a; bold is the best of a set.",)
    for j, measured in enumerate(report.lists.sets, 1):
        scores = {report.names.label(n): f"{one.score:.2f}" for n, one in measured.results.items()}
        assert column(first, measured.sample.name) == scores
        ((best, _),) = [cell for cell in first.best if cell[1] == j]
        usable = [float(score) for label, score in scores.items() if label != "oracle"]
        assert float(first.rows[best][j]) == min(usable)
    assert [table.header[:4] for table in others] == [
        ("system", "dev WER %", "dev-a WER %", f"{name} WER %") for name in ("test-a", "test-b")
    ]
    assert not [note for note in titled(report, "Weights").notes if "Warning" in note]
    names = [picture.name for picture in make_pictures(report)]
    assert {"systems-test-a", "systems-test-b", "length-test-a", "length-test-b"} <= set(names)
    assert len(set(names)) == len(names)


def test_other_metrics_have_no_word_errors(fresh):
    for path in fresh.glob("tune/*/weights.json"):
        tree = json.loads(path.read_text()) | {"metric": "bleu"}
        tree["dev"]["bleu"] = tree["dev"].pop("wer")
        write_json(tree, path)
    report = collect_rescoring(fresh)
    (table,) = main_tables(report)
    assert table.header == (
        "system",
        "dev BLEU",
        "test BLEU",
        "95% CI",
        "change",
        "relative",
        "p (sacreBLEU)",
        "p (tuned)",
    )
    chances = column(table, "p (sacreBLEU)")
    assert chances["oracle"] == chances["first pass"] == "-"
    assert all(0 < float(chances[name].lstrip("<")) <= 1 for name in ("T-TA", "n-gram"))
    said = " ".join(report.provenance())
    assert "metric:bleu|nrefs:1|case:mixed|eff:no|tok:13a" in said
    assert "sacreBLEU's paired bootstrap of 1,000 resamples, seed 12345" in said
    scores = {
        name: float(score) for name, score in column(table, "test BLEU").items() if name != "oracle"
    }
    (row,) = [i for i, j in table.best if j == 2]
    assert scores[table.rows[row][0]] == max(scores.values())


def test_missing_hypotheses_are_told(fresh):
    path = fresh / "rescore/tta/test.txt"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    (table,) = main_tables(collect_rescoring(fresh))
    assert any("T-TA has no hypothesis for 1 utterances" in note for note in table.notes)


@pytest.mark.parametrize(
    ("p", "said"), [(1, "1.000"), (0.0004, "<0.001"), (0.0005, "0.001"), (0.0491, "0.049")]
)
def test_probability(p, said):
    assert probability(p) == said


@pytest.mark.parametrize(("bounds", "said"), [((0, 0), "0"), ((3, 5), "3-5"), ((21, None), "21+")])
def test_span(bounds, said):
    assert span(bounds) == said


def test_no_relative_change_to_a_perfect_first_pass(report):
    measured = report.lists.sets[1]
    perfect = {**measured.results, "@first": replace(measured.results["@first"], score=0.0)}
    rows = rows_of_set(replace(measured, results=perfect))
    (relative,) = [row for row in rows if (row.name, row.quantity) == ("tta", "relative change")]
    assert relative.value is None


def test_what_rescoring_lattices_took(fresh):
    """Rates are over the seconds of speech and of work; differences only of models that read both
    sides.
    """
    tree = {
        "lattices": 3,
        "arcs": 1200,
        "rescored_arcs": 4800,
        "speech": 60.0,
        "seconds": 1.5,
        "approximation": {},
    }
    near = {"approximation": {"word_mean": 0.0456, "sentence_mean": 0.5}}
    files = {
        "ngram": tree,
        "tta": {**tree, **near, "seconds": 6.0},
        "causal": {**tree, "speech": 0.0},
        "mine": {**tree, "seconds": 0.0},
    }
    for system, content in files.items():
        path = fresh / "lattice" / system / "test.json"
        path.parent.mkdir(parents=True)
        write_json(content, path)
    table = titled(collect_rescoring(fresh), "Rescoring lattices")
    assert [row[0] for row in table.rows] == ["n-gram", "uniLM (causal)", "T-TA", "mine"]
    assert {row[1] for row in table.rows} == {"test"}
    sizes = ("3", "1,200", "4,800")
    assert [row[2:] for row in table.rows] == [
        (*sizes, "20.0", "0.025", "800", NONE, NONE),
        (*sizes, NONE, NONE, "800", NONE, NONE),
        (*sizes, "20.0", "0.100", "200", "0.046", "0.500"),
        (*sizes, "20.0", "0.000", NONE, NONE, NONE),
    ]


def test_a_matched_pairs_test_that_is_undefined_is_told(report):
    test = next(measured for measured in report.lists.sets if measured.sample.name == "test")
    assert not any("sign test" in note for note in main_table(report, test).notes)
    pairs = replace(test.results["tta"].pairs, z=None, p=0.002)
    results = {**test.results, "tta": replace(test.results["tta"], pairs=pairs)}
    table = main_table(report, replace(test, results=results))
    assert "p (MAPSSWE) of T-TA is that of the exact sign test" in " ".join(table.notes)


def test_undefined_scores_of_evaluate_are_dashes(tmp_path):
    """A label none of whose segments has words: null in the JSON of evaluate, a dash here."""
    home = experiment(tmp_path / "exp")
    tree = {"metric": "wer", "signature": "s", "score": 50.0, "interval": [0, 100]}
    tree["by label"] = [{"name": "CH", "score": None}, {"name": "SW", "score": 50.0}]
    for place, more in (("test", {}), ("dev", {"score": None, "interval": None})):
        (home / "scored/tta").mkdir(parents=True, exist_ok=True)
        (home / f"scored/tta/{place}.json").write_text(json.dumps(tree | more))
    tables = list(scored_tables(collect_rescoring(home)))
    cells = {table.title.split(": ")[1]: rows_of(table)[0] for table in tables}
    assert cells["test"]["score"] == "50.00" == cells["test"]["SW"]
    assert "CH" not in cells["test"] and "score" not in cells["dev"]
