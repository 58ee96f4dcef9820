"""What the tables say, against the measurements and against jiwer."""

from dataclasses import replace

import numpy as np
import pytest
from unit.report.conftest import collect_rescoring, titled

from lmtools.evaluate.significance import flip_signs, holm
from lmtools.formats import kaldi_text
from lmtools.report.main_tables import main_table, main_tables
from lmtools.report.rescoring_tables import ppl_tables
from lmtools.report.rows import rows_of_set
from lmtools.report.style import load_style
from lmtools.report.table import probability
from lmtools.rescoring.experiment import read_experiment


@pytest.fixture(scope="module")
def report(exp):
    return collect_rescoring(exp, command="lmtools report exp")


def column(table, name):
    """Cells of a column by the first cell of their rows."""
    place = table.header.index(name)
    return {row[0]: row[place] for row in table.rows}


def test_systems_are_compared_with_the_tuned_first_pass(report):
    table, *_ = main_tables(report)
    texts = {name: test.texts for name, test in report.lists.sets[1].results.items()}
    found = report.lists.sets[1].refs.compare(texts["tta"], texts["first-pass"]).p
    shown = column(table, "p (tuned)")
    assert shown["T-TA"] == probability(found) != "-"
    assert {shown[name] for name in ("first pass", "oracle", "tuned without LM")} == {"-"}
    assert any("with tuned weights and no LM" in note for note in table.notes)


def test_a_note_on_pseudo_perplexities_stands_where_there_are_some(exp):
    for kept in ({"causal", "tta"}, {"causal"}):
        report = collect_rescoring(exp, command="lmtools report exp")
        for key in [key for key in report.ppl if key[0] not in kept]:
            del report.ppl[key]
        (table,) = ppl_tables(report)
        told = any("A pseudo-perplexity sees" in note for note in table.notes)
        assert told == ("tta" in kept)


def test_whole_groups_and_what_was_planned(exp, tmp_path):
    """Two speakers: with both, sign flips have 1 or 0.5. Holm's values are those of the others."""
    test = collect_rescoring(exp).lists.sets[1]
    utts = list(test.refs.refs)
    speakers = {utt: "ann" if place < 10 else "bob" for place, utt in enumerate(utts)}
    kaldi_text.write(speakers, tmp_path / "utt2spk.test")
    (tmp_path / "e.yaml").write_text(
        f"groups: speaker={tmp_path}/utt2spk.{{set}}\nplanned: [tta]\nsystems: {{tta: []}}\n"
    )
    style = load_style(None, read_experiment(tmp_path / "e.yaml"))
    table, *_ = main_tables(collect_rescoring(exp, style=style))
    statistics = [test.results[name].statistics for name in ("tta", "@first")]
    halves = [np.array([part[:10].sum(0), part[10:].sum(0)]) for part in statistics]
    expected = flip_signs(*halves, "wer", 1)
    assert expected in (0.5, 1)
    assert column(table, "p (speaker flips)")["T-TA"] == probability(expected)
    assert column(table, "p (speaker bootstrap)")["T-TA"] != "-"
    shown = column(table, "p (Holm)")
    assert shown.pop("T-TA") == "planned" and shown.pop("oracle") == shown.pop("first pass") == "-"
    others = [r.pairs.p for name, r in test.results.items() if name[0] != "@" and name != "tta"]
    assert sorted(shown.values()) == sorted(map(probability, holm(others)))
    assert f"p (MAPSSWE) of the {len(others)} comparisons" in table.notes[-1]


def test_only_dev_is_judged_where_there_is_nothing_else(exp):
    report = collect_rescoring(exp, nbests=[exp.parent / "data/dev/nbest.jsonl.gz"])
    table, *_ = main_tables(report)
    assert table.title.endswith(": dev")
    assert table.header[:3] == ("system", "dev WER %", "95% CI")


def test_systems_without_scores_have_no_depths(fresh):
    (fresh / "score/ngram/test.scores").unlink()
    assert list(column(titled(collect_rescoring(fresh), "WER % by list depth"), "1")) == [
        "oracle", "tuned without LM", "uniLM (causal)", "biLM (masked)", "T-TA",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("p", "said"), [(1, "1.000"), (0.0004, "<0.001"), (0.0005, "0.001"), (0.0491, "0.049")]
)
def test_probability(p, said):
    assert probability(p) == said


def test_no_relative_change_to_a_perfect_first_pass(report):
    measured = report.lists.sets[1]
    perfect = {**measured.results, "@first": replace(measured.results["@first"], score=0.0)}
    rows = rows_of_set(replace(measured, results=perfect))
    (relative,) = [row for row in rows if (row.name, row.quantity) == ("tta", "relative change")]
    assert relative.value is None


def test_a_matched_pairs_test_that_is_undefined_is_told(report):
    test = next(measured for measured in report.lists.sets if measured.sample.name == "test")
    assert not any("sign test" in note for note in main_table(report, test).notes)
    pairs = replace(test.results["tta"].pairs, z=None, p=0.002)
    results = {**test.results, "tta": replace(test.results["tta"], pairs=pairs)}
    table = main_table(report, replace(test, results=results))
    assert "p (MAPSSWE) of T-TA is that of the exact sign test" in " ".join(table.notes)
