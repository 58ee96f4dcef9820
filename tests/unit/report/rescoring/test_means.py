"""Systems that take means over tokens and other lengths than words: depths, weights, figures; and
reports of BLEU.
"""

import shutil
from dataclasses import replace

import pytest
from unit.report.conftest import collect_rescoring, pictured, rows_of, titled

from lmtools.cli import main
from lmtools.report.drawing import LIGHT
from lmtools.report.rescoring_figures import draw_systems, legible
from lmtools.report.rescoring_tables import list_deviations
from lmtools.report.write import make_pictures, make_tables

MEANS = ("tta-mean", "ngram-mean")


@pytest.fixture(scope="module")
def report(exp, tmp_path_factory):
    """Of an experiment with two means, tuned and rescored by the verbs."""
    exp = shutil.copytree(exp.parent, tmp_path_factory.mktemp("egs") / "made-up") / "exp"
    for system in MEANS:
        lm, weights = system.removesuffix("-mean"), exp / "tune" / system / "weights.json"
        for name, more in (
            ("dev", ("--set", "lengths=words,log-words", "--out", weights)),
            ("test", ("--weights", weights)),
        ):
            column = f"{lm}/token={exp}/score/{lm}/{name}.scores"
            common = (
                "--nbest",
                exp.parent / f"data/{name}/nbest.jsonl.gz",
                "--scores",
                column,
                *more,
            )
            out = () if name == "dev" else ("--out", exp / f"rescore/{system}/test.txt")
            assert main([*map(str, ("tune" if name == "dev" else "rescore", *common, *out))]) == 0
    return collect_rescoring(exp, command="lmtools report exp")


def test_the_whole_depth_is_what_rescoring_chose(report):
    _, test = report.lists.sets
    assert test.by_depth.keys() == report.lists.systems.keys() > set(MEANS)
    for name, curve in test.by_depth.items():
        assert curve[-1] == pytest.approx(test.results[name].score)
    assert list(list_deviations(report)) == []


def test_weights_of_means_stand_beside_those_of_sums(report):
    table = titled(report, "Weights")
    names = "system am lm words log-words ngram ngram/token causal masked tta tta/token"
    assert " ".join(table.header) == names
    (row,) = [row for row in rows_of(table) if row["system"] == "T-TA, mean over tokens"]
    weight = report.lists.systems["tta-mean"].weights.features["tta/token"]
    assert float(row["tta/token"]) == pytest.approx(weight, rel=1e-3) and row["tta"] == "-"
    meaning = "`log-words` log(1 + its number of words); `LM/token` the LM's mean over tokens"
    assert meaning in table.notes[0] and "characters" not in table.notes[0]


def test_marks_of_means_are_hollow(report):
    names = ("tta", "tta-mean")
    axes = draw_systems(report, report.lists.sets[1], names, LIGHT).axes[0]
    tta, mean = [line for line in axes.get_lines() if line.get_marker() == "*"]
    assert tta.get_color() == mean.get_color() == tta.get_markerfacecolor()
    assert mean.get_markerfacecolor() == LIGHT.paper
    picture = pictured(report, "scale")
    scales = {
        line.get_label(): line.get_xdata() for line in picture.draw(LIGHT).axes[0].get_lines()
    }
    assert scales["T-TA, mean over tokens"] == [
        report.lists.systems["tta-mean"].weights.features["tta/token"]
    ]


@pytest.mark.parametrize(
    ("more", "shown", "said"),
    [(9, True, ""), (10, False, " 2 are left out: means over tokens are in the tables.")],
)
def test_figures_leave_means_out_where_lines_are_many(report, more, shown, said):
    names = ["tta", *MEANS, *map(str, range(more))]
    assert legible(report, names) == ([n for n in names if shown or n not in MEANS], said)


def test_a_report_of_bleu_does_not_speak_of_words_that_are_wrong(report):
    systems = {name: report.lists.systems[name] for name in ("first-pass", "tta")}
    bleu = replace(report, lists=replace(report.lists, metric="bleu", systems=systems))
    drawn = [
        picture for picture in make_pictures(bleu) if picture.name not in ("learning", "speed")
    ]
    said = [repr(make_tables(bleu)), *(picture.caption + picture.alt for picture in drawn)]
    said += [
        text
        for picture in drawn
        for axes in picture.draw(LIGHT).axes
        for text in (axes.get_xlabel(), axes.get_ylabel())
    ]
    assert not [text for text in said if "WER" in text or "MAPSSWE" in text or "BLEU %" in text]
    assert sum("BLEU" in text for text in said) > 5
    table = make_tables(bleu)[0]
    (best,) = [row for row, column in table.best if table.header[column] == "test BLEU"]
    place = table.header.index("test BLEU")
    assert float(table.rows[best][place]) == max(
        float(row[place]) for row in table.rows if row[0] != "oracle"
    )


def test_interpolations_have_a_table_of_their_lambdas(report, tmp_path):
    """Beside the linear systems of the same model, in its colour, and in no figure of scales."""
    exp = shutil.copytree(report.home.parent, tmp_path / "made-up") / "exp"
    lists = exp.parent / "data/dev/nbest.jsonl.gz"
    column = ("--scores", f"tta={exp}/score/tta/dev.scores")
    weights = exp / "tune/tta-interpolated/weights.json"
    fixed = ("--set", "form=interpolation", "--fix", "am=0.1", "lm=1", "--out", weights)
    assert main([*map(str, ("tune", "--nbest", lists, *column, *fixed))]) == 0
    column = ("--scores", f"tta={exp}/score/tta/test.scores", "--weights", weights)
    lists = exp.parent / "data/test/nbest.jsonl.gz"
    out = ("--out", exp / "rescore/tta-interpolated/test.txt")
    assert main([*map(str, ("rescore", "--nbest", lists, *column, *out))]) == 0
    new = collect_rescoring(exp, command="lmtools report exp")
    weights = new.lists.systems["tta-interpolated"].weights
    (row,) = titled(new, "Interpolation with the first pass").rows
    assert row[:3] == ("T-TA", "sum", f"{weights.search['lambda']:.4g}")
    assert row[-1] == f"{weights.dev.score:.2f}"
    assert "Interpolation with the first pass" not in {table.title for table in make_tables(report)}
    labels = [row[0] for row in make_tables(new)[0].rows]
    place = labels.index("T-TA, interpolated")
    assert labels[place - 1] == "T-TA" and labels[place + 1] == "T-TA, mean over tokens"
    looks = new.names.looks(new.lists.systems)
    assert looks["tta-interpolated"].light == looks["tta"].light
    assert looks["tta-interpolated"].line != looks["tta"].line
    scale = pictured(new, "scale")
    assert "T-TA" in scale.alt and "interpolated" not in scale.alt
