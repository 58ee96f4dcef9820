"""Report of semantic textual similarity: what is read, in which order it stands, tables against
figures computed anew, bad input.
"""

import json
import math

import matplotlib
import numpy as np
import pytest
from unit.report.conftest import collect_sts
from unit.report.sts.toys import STYLE, sign, sts_experiment

from lmtools.base.errors import UserError
from lmtools.base.seal import write_json
from lmtools.report.drawing import LIGHT
from lmtools.report.experiment import recognise
from lmtools.report.table import markdown
from lmtools.report.write import make_pictures, make_tables, write_report
from lmtools.vectors.judged import GRADES, Way, find_ways, label_way

FEW = {"causal": {0: 0.5, 1: 0.4}, "tta": {0: 0.5, 1: 0.7}, "words": {0: 0.6}}
ORDER = [
    "causal",
    "causal-eos",
    "masked-masked",
    "masked",
    "masked-cls",
    "masked-boundaries",
    "bert",
    "tta",
    "tta-max",
    "words",
    "tfidf",
]


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    return sts_experiment(tmp_path_factory.mktemp("egs") / "stsb")


@pytest.fixture(scope="module")
def constructed(tmp_path_factory):
    return sts_experiment(tmp_path_factory.mktemp("egs") / "mini", corpus="mini")


@pytest.fixture
def small(tmp_path):
    return sts_experiment(tmp_path / "stsb", quality=FEW, sizes={"dev": 20, "test": 30})


def tables(exp):
    return {table.title: table for table in make_tables(collect_sts(exp, style=STYLE))}


def drawn(exp) -> list[str]:
    """The names of the figures, all of which can be drawn."""
    pictures = make_pictures(collect_sts(exp, style=STYLE))
    with matplotlib.rc_context({"backend": "agg"}):
        assert all(picture.draw(LIGHT).axes for picture in pictures)
    return [picture.name for picture in pictures]


def cells(table) -> dict:
    """Printed cells by (row, column)."""
    return {
        (row[0], name): cell
        for row in table.rows
        for name, cell in zip(table.header, row, strict=True)
    }


def tree(exp, system, name="test"):
    return json.loads((exp / f"sts/{system}/{name}.json").read_text())


def change(exp, system, edit, name="test"):
    """Rewrite a result as `edit` changes it."""
    content = tree(exp, system, name)
    edit(content)
    write_json(content, exp / f"sts/{system}/{name}.json")


def starting(found, start):
    return next(table for title, table in found.items() if title.startswith(start))


def ways_of(*systems):
    return find_ways({system: sign(system) for system in systems})


@pytest.mark.parametrize(
    "system, systems, expected",
    [
        ("bert", (), "BERT"),
        ("bert", ("bert-masked",), "BERT intact"),
        ("bert-masked", (), "BERT mask-and-predict"),
        ("masked", (), "biLM intact"),
        ("masked-max", (), "biLM maximum"),
        ("mine-2", (), "mine-2"),
        ("bert-eos", ("bert-cls",), "BERT [EOS]"),
        ("a-eos", ("b-eos",), "a-eos [EOS]"),  # two models of a kind, and which is which?
        ("words", (), "word vectors"),
    ],
)
def test_labels(system, systems, expected):
    assert label_way(ways_of(system, *systems)[system], STYLE) == expected


def test_views_are_read_from_the_signature_and_not_from_the_name():
    plain, masked = {"lm": "masked", "model": "1"}, {"lm": "masked", "model": "1", "masked": "yes"}
    ways = find_ways({"my-eos": {"lm": "causal"}, "x-max": plain, "y": {**masked, "pool": "cls"}})
    assert ways == {
        "my-eos": Way("my-eos"),
        "x-max": Way("x-max", (), True),
        "y": Way("x-max", ("masked", "cls")),
    }
    assert label_way(ways["y"], STYLE) == "x-max mask-and-predict, [CLS]"


def test_what_is_constructed_is_said_to_be(judged, constructed):
    made, real = tables(constructed), tables(judged)
    assert not any("constructed" in markdown(table) for table in real.values())
    for title, table in made.items():
        if table.part == "results":
            assert title.endswith(", constructed similarity")
            assert any("nobody judged it" in note for note in table.notes)
    content = tree(constructed, "tta", "test")
    gold, cosines = np.array(content["similarity"]), np.array(content["rows"][-1]["cosine"])
    table = made["Mean cosine by similarity on test: mini (mini), constructed similarity"]
    assert len(table.header) - 1 == len(np.unique(gold)) <= GRADES
    means = [f"{cosines[gold == grade].mean():.3f}" for grade in np.unique(gold)]
    assert list(table.rows[ORDER.index("tta")][1:]) == means
    assert not any("Mean cosine" in title for title in real)


@pytest.mark.parametrize(
    "edit, said",
    [
        (lambda t: t.pop("rows"), "damaged (KeyError('rows')"),
        (lambda t: t.update(rows=[]), "it has no layers"),
        (lambda t: t.update(rows=[{"layer": 0}]), "damaged"),
        (lambda t: t.update(rows={}), "it has no layers"),
        (lambda t: t.pop("sha256"), "damaged (KeyError('sha256')"),
        (lambda t: t["similarity"].pop(), "not as many finite numbers"),
        (lambda t: t["rows"][0]["cosine"].append(0.5), "not as many finite numbers"),
        (lambda t: t["rows"][0]["cosine"].__setitem__(0, math.nan), "not as many finite numbers"),
        (lambda t: t["rows"][0]["cosine"].__setitem__(0, "near"), "damaged"),
        (lambda t: t["rows"][0].update(pearson=[0.1]), "damaged"),
        (lambda t: t.update(signature=None), "damaged"),
        (lambda t: t.update(sha256="0" * 64), "of other pairs than"),
    ],
)
def test_damaged_results_are_named(small, edit, said):
    change(small, "tta", edit)
    with pytest.raises(UserError) as error:
        collect_sts(small, style=STYLE)
    assert str(error.value).startswith(f"{small}/sts/tta/test.json: ")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_pairs_that_nobody_judged_are_left_out(small):
    for system in FEW:
        change(
            small,
            system,
            lambda t: t.update(similarity=None, rows=[{"layer": 0, "cosine": [0.5] * 30}]),
        )
    experiment = collect_sts(small, style=STYLE)
    assert experiment.pairs.sets == ["dev"]
    assert sum("test.json: nobody judged" in line for line in experiment.absent) == len(FEW)
    assert experiment.pairs.test == "dev"
    assert drawn(small) == ["bars", "scatter-dev"]
    assert (
        "test context" not in starting(tables(small), "Semantic textual similarity, Pearson").header
    )


def test_cosines_that_are_all_alike_have_dashes(small):
    def flat(content):
        for row in content["rows"]:
            row.update(pearson=None, spearman=[None, None, None], cosine=[1.0] * content["count"])

    change(small, "words", flat)
    found = cells(starting(tables(small), "Semantic textual similarity, Pearson"))
    assert [found["word vectors", name] for name in ("test embed", "test 95%", "p")] == ["-"] * 3
    assert found["uniLM", "p"] != "-"
    assert drawn(small) == ["bars", "scatter-test"]


def test_a_set_without_some_systems_and_without_the_reference(small):
    (small / "sts/tta/test.json").unlink()
    table = starting(tables(small), "Semantic textual similarity, Pearson")
    assert "p" not in table.header
    assert not any("Williams" in note for note in table.notes)
    assert cells(table)["T-TA", "test context"] == "-"
    assert cells(table)["T-TA", "dev context"] != "-"


def test_an_empty_experiment_names_what_is_absent(tmp_path):
    text, notes = write_report(tmp_path, what="sts")
    assert text == ""
    assert [note.partition(":")[0] for note in notes] == [
        f"{tmp_path}/{name}"
        for name in ("sts/SYSTEM/SET.json", "lm/LM/metrics.jsonl", "stages/N.json")
    ]


def test_scripts_beside_run_sh_are_named(small):
    """Their stages stand behind those of run.sh, their commands too."""
    for name in ("speed-4", "paper-12", "paper-3", "hashes"):
        stage = {"stage": 3, "title": name, "command": f"./run_{name}.sh --nj 2", "seconds": 1.0}
        write_json(stage, small / f"stages/{name}.json")
    report = collect_sts(small)
    assert [one["title"] for one in report.stages][-3:] == ["paper-3", "paper-12", "speed-4"]
    made = [line for line in report.provenance() if line.startswith("Made by")]
    assert made[0].startswith("Made by `./run.sh --corpus stsb`, then `./run_paper-3.sh --nj 2`,")


def test_recognised_by_what_there_is(small, tmp_path):
    assert recognise(small, ()) == "sts"
    with pytest.raises(UserError, match="no N-best lists; leave out --nbest, or --what sts"):
        write_report(small, ["dev.jsonl"])
    (small / "rescore/tta").mkdir(parents=True)
    (small / "rescore/tta/dev.txt").write_text("a b\n")
    assert recognise(small, ()) == "sts"


def test_a_report_is_written_and_is_the_same_again(small):
    write_report(small, title="A & <b>")
    names = {"RESULTS.md", "index.html", "bars.png", "scatter-test.png", "rows.csv"}
    first = {path.name: path.read_bytes() for path in (small / "report").iterdir()}
    assert first.keys() == names
    assert b"A & &lt;b>" in first["RESULTS.md"]
    assert b"A &amp; &lt;b&gt;" in first["index.html"]
    (small / "report/scatter-dev.png").write_bytes(b"of another experiment")
    write_report(small, title="A & <b>")
    assert {path.name: path.read_bytes() for path in (small / "report").iterdir()} == first
