"""`lmtools tune` names scores of the wrong sign and weights that ran away, with what mends them."""

import dataclasses
import json
from shlex import split

import numpy as np
import pytest

from lmtools.cli import main
from lmtools.formats import jsonl
from lmtools.rescoring.tuning import divide_weights
from lmtools.rescoring.weights import Weights, describe_doubts
from lmtools.types import Hypothesis, NBest


def write(path, sign=1.0, names=("am",), noise=0.1):
    """Lists of three in which a wrong word costs a nat of each score, with noise."""
    rng = np.random.default_rng(1)
    words = ["old", "king", "said", "unto", "his", "men"]
    lists = []
    for number in range(40):
        ref = [str(word) for word in rng.choice(words, size=6)]
        hyps = [
            Hypothesis(
                " ".join([*ref[:rank], *["noise"] * rank, *ref[2 * rank :]]),
                {name: sign * (-20.0 - rank + noise * float(rng.normal())) for name in names},
            )
            for rank in range(3)
        ]
        lists.append(NBest(f"u{number}", tuple(hyps), " ".join(ref)))
    jsonl.write(lists, path)


@pytest.fixture
def tune(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*options):
        assert main([*split("tune --nbest n --metric wer --out w.json"), *options]) == 0
        return capsys.readouterr().err, json.loads((tmp_path / "w.json").read_text())

    return run


@pytest.mark.parametrize("metric", ["wer", "cer", "bleu", "chrf"])
def test_costs_are_named(tune, metric):
    write("n", sign=-1.0)
    told, tree = tune("--metric", metric)
    assert "'am' has the sign of costs" in told and "--fix am=-1 turns it round" in told
    assert "negative=" not in told and tree["search"]["costs"] == ["am"]
    told, tree = tune("--fix", "am=-1", "--metric", metric)
    assert "-> 0.00" in told or "-> 100.00" in told
    assert "warning" not in told
    assert "costs" not in tree["search"]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_costs_of_a_column(tune, sign):
    write("n")
    values = [-sign * (20 + rank) for _ in range(40) for rank in range(3)]
    with open("column", "w") as out:
        out.write("".join(f"{value}\n" for value in values))
    told, tree = tune("--scores", "lm=column")
    assert ("--set negative=lm turns it round" in told) == (sign < 0)
    assert tree["search"].get("costs", []) == ["lm"] * (sign < 0)


def test_sound_weights_have_no_doubts(tune):
    write("n")
    told, tree = tune()
    assert "warning" not in told and not tree["search"].keys() & {"costs", "runaway"}


def test_weights_that_ran_away(tune):
    """The score says nothing of what the references want, which is short hypotheses."""
    rng = np.random.default_rng(2)
    lists = []
    for i in range(60):
        texts = ["no " * size for size in rng.permutation([1, 2, 3, 4, 5])]
        lists.append(NBest.of(f"u{i}", texts, "no", am=rng.normal(size=5)))
    jsonl.write(lists, "n")
    told, tree = tune()
    (times,) = tree["search"]["runaway"].values()
    weight = tree["features"]["words"]
    assert f"the weights ran away: words {weight:.4g} outweighs am {times:.0f} to 1" in told
    assert "--fix words=0" in told and times > 40
    # what counts has weight 1, unless the scale is given; either way the choices are the same
    assert weight == -1 and tree["search"]["unit"] == "words"
    assert tune("--fix", "am=1")[1]["features"]["words"] == pytest.approx(
        -1 / tree["features"]["am"]
    )
    assert tune("--set", "reference=am")[1]["features"]["am"] == 1


def test_what_counts_has_weight_1_and_nothing_weight_0(tune):
    """Sound weights keep their scale."""
    parts = {"am": 1e-3, "norm": 5.0, "lm": 1e-15}
    assert divide_weights({"am": 1.0, "norm": -4e4, "lm": 7e-13}, parts, "norm") == {
        "am": 1 / 4e4, "norm": -1.0, "lm": 0.0,
    }  # fmt: skip
    write("n", names=("am", "other"))
    _, tree = tune()
    assert tree["features"]["am"] == 1 and "unit" not in tree["search"]


@pytest.mark.parametrize("scored", [False, True])
def test_systems_of_a_pool_are_no_costs_and_do_not_run_away(tune, scored):
    """The first system is the worst, and a flat score decides ties: trust is tuned."""
    rng = np.random.default_rng(3)
    lists = []
    for number in range(60):
        ref = [str(word) for word in rng.choice(["old", "king", "men"], size=6)]
        hyps = []
        for place, errors in enumerate((4, 1, 2)):
            words = ["noise"] * errors + ref[errors:] if rng.random() < 0.9 else ref
            scores = {f"system:{name}": float("abc"[place] == name) for name in "abc"}
            if scored:
                scores = {"am": -20 + 0.001 * float(rng.normal())} | scores
            hyps.append(Hypothesis(" ".join(words), scores, {"system": "abc"[place]}))
        lists.append(NBest(f"u{number}", tuple(hyps), " ".join(ref)))
    jsonl.write(lists, "n")
    told, tree = tune()
    assert "costs" not in told and "ran away" not in told and "warning" not in told, told
    assert max("abc", key=lambda name: tree["features"][f"system:{name}"]) == "b"


def test_a_model_of_no_use_is_told(tune, tmp_path, capsys):
    """By every verb that has weights; not one that was fixed at 0."""
    write("n", noise=0.0)
    (tmp_path / "t").write_text("old king said\n")
    assert main(split("ngram --text t --order 1 --out lm")) == 0
    assert main(split("score --nbest n --lm lm --out s --cache none")) == 0
    tune("--scores", "new=s")
    weights = Weights.load("w.json")
    useless = dataclasses.replace(weights, features={**weights.features, "new": 0.0})
    assert "warning: new has the weight 0: it is of no use on n" in [*describe_doubts(useless)]
    useless.save("useless.json")
    assert main(split("rescore --nbest n --scores new=s --weights useless.json --out o")) == 0
    assert "new has the weight 0: it is of no use" in capsys.readouterr().err
    assert main(split("rescore --nbest n --lm new=lm --weights useless.json --out o")) == 0
    assert "new has the weight 0: it is of no use" in capsys.readouterr().err
    assert "weight 0" not in tune("--scores", "new=s", "--fix", "new=0")[0]
