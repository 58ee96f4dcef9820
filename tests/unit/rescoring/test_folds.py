"""Cross-validation: how utterances are divided, that no fold's weights see its utterances, and that
rescoring takes them.
"""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats import jsonl
from lmtools.rescoring.features import gather
from lmtools.rescoring.folds import FoldPlan, assign_folds, parse_folds
from lmtools.rescoring.lists import rescore
from lmtools.rescoring.tuning import Crossing, measure_lists, tune
from lmtools.rescoring.tuning_options import TuningOptions
from lmtools.rescoring.weights import Weights
from lmtools.types import Hypothesis, NBest

UTTERANCES = [
    f"{speaker}-{i}" for speaker, count in (("a", 6), ("b", 3), ("c", 3)) for i in range(count)
]
BY_SPEAKER = FoldPlan("speaker", None)


def make_lists(seed=0):
    """Lists whose references are among four hypotheses with scores of two features."""
    rng = np.random.default_rng(seed)
    lists = []
    for utt in UTTERANCES:
        texts = ["x y z", "x y", "x w z v", "q"]
        hyps = tuple(
            Hypothesis(text, dict(zip(("am", "lm"), map(float, rng.normal(size=2)), strict=True)))
            for text in texts
        )
        lists.append(NBest(utt, hyps, texts[rng.integers(3)]))
    return lists


def crossed(nbests):
    features = gather(nbests, {}, "lists", ["words"])
    options = TuningOptions(lms=("lm",), folds="speaker")
    return Crossing(nbests, options, None, "lists").tune(
        features, measure_lists(nbests, "wer", "lists"), options
    )


@pytest.mark.parametrize(
    "word, plan",
    [
        ("5", FoldPlan("random", 5)),
        ("speaker", BY_SPEAKER),
        ("speaker:2", FoldPlan("speaker", 2)),
        *((wrong, None) for wrong in ("", "1", "speaker:", "speaker:1", "all", "-3", "2.5")),
    ],
)
def test_what_folds_spells(word, plan):
    if plan:
        assert parse_folds(word) == plan
    else:
        with pytest.raises(ValueError, match="none of N, speaker and speaker:N"):
            parse_folds(word)


def test_every_utterance_is_in_one_fold_whatever_their_order():
    for plan, names in (
        (FoldPlan("random", 5), "1 2 3 4 5"),
        (BY_SPEAKER, "a b c"),
        (FoldPlan("speaker", 2), "a b+c"),
        (FoldPlan("speaker", 9), "a b c"),
    ):
        folds = assign_folds(UTTERANCES, plan, 0, None, "dev")
        assert sorted(folds) == names.split()
        assert sorted(utt for fold in folds.values() for utt in fold) == sorted(UTTERANCES)
        assert assign_folds(UTTERANCES[::-1], plan, 0, None, "dev") == folds
    sizes = {
        len(fold) for fold in assign_folds(UTTERANCES, FoldPlan("random", 5), 0, None, "").values()
    }
    assert sizes == {2, 3}
    own = assign_folds(UTTERANCES, BY_SPEAKER, 0, {utt: utt[-1] for utt in UTTERANCES}, "dev")
    assert own["5"] == ("a-5",) and len(own) == 6


@pytest.mark.parametrize(
    "utterances, plan, speakers, message",
    [
        (["a-1", "a-2"], BY_SPEAKER, None, "dev: ids such as 'a-1' do not tell who speaks; give"),
        (["a1-1", "a1-2"], BY_SPEAKER, None, "dev: all utterances are of one speaker, 'a1'; give"),
        (["a-1", "b"], BY_SPEAKER, None, "dev: ids such as 'b' do not tell who speaks; give the"),
        (["a-1", "b"], BY_SPEAKER, {"b": "x"}, "dev: no speaker of 'a-1'; give"),
        (["a", "b"], FoldPlan("random", 3), None, "dev: 2 utterances are fewer than 3 folds"),
    ],
)
def test_what_cannot_be_divided_is_said(utterances, plan, speakers, message):
    with pytest.raises(UserError, match=message):
        assign_folds(utterances, plan, 0, speakers, "dev")


def test_weights_of_a_fold_are_those_of_the_other_utterances():
    nbests = make_lists()
    weights, alone = crossed(nbests), TuningOptions(lms=("lm",))
    assert replace(weights, folds=None) == tune(
        nbests, gather(nbests, {}, "lists", ["words"]), "lists", alone
    )
    for fold in weights.folds.parts:
        rest = [nbest for nbest in nbests if nbest.utt not in fold.utterances]
        found = tune(rest, gather(rest, {}, "lists", ["words"]), "lists", alone)
        assert fold.features == found.features
    changed = [
        replace(nbest, ref="q") if nbest.utt.startswith("b") else nbest for nbest in nbests
    ]  # what is not seen cannot matter
    again = {fold.name: fold.features for fold in crossed(changed).folds.parts}
    assert again["b"] == {fold.name: fold.features for fold in weights.folds.parts}["b"]


def test_rescoring_takes_the_weights_that_did_not_see_the_utterance(tmp_path):
    nbests = [*make_lists(), replace(make_lists(1)[0], utt="a-new")]
    weights = crossed(nbests[:-1])
    weights.save(tmp_path / "w.json")
    assert Weights.load(tmp_path / "w.json") == weights
    parts = {utt: fold for fold in weights.folds.parts for utt in fold.utterances}
    for chosen in rescore(nbests, gather(nbests, {}, "lists", ["words"]), weights, "lists"):
        own = parts.get(chosen.utt, weights).features
        top = chosen.hyps[0].scores
        assert top["total"] == pytest.approx(sum(own[name] * top[name] for name in own))
        assert top["total"] == max(hyp.scores["total"] for hyp in chosen.hyps)
    assert len({tuple(fold.features.values()) for fold in weights.folds.parts}) > 1


def change(tree, part, key, value):
    tree["folds"]["parts"][part][key] = value


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda tree: change(tree, 0, "utterances", ["b-0"]), "utterance 'b-0' is of two folds"),
        (lambda tree: change(tree, 0, "utterances", [3]), "utterances[0]' is 3, expected a text"),
        (lambda tree: change(tree, 1, "features", {"am": 1.0}), "fold 'b' has other features"),
        (
            lambda tree: tree["folds"]["parts"][2]["features"].update(am="x"),
            "parts[2].features.am' is 'x', expected a finite number",
        ),
        (
            lambda tree: tree["folds"].update(by="day"),
            "by' is 'day', expected one of random, speaker",
        ),
        (lambda tree: tree["folds"].pop("score"), "key 'folds.score' is missing"),
    ],
)
def test_damaged_folds(tmp_path, damage, message):
    crossed(make_lists()).save(tmp_path / "w.json")
    tree = json.loads((tmp_path / "w.json").read_text())
    damage(tree)
    (tmp_path / "w.json").write_text(json.dumps(tree))
    with pytest.raises(UserError, match=re.escape(message)):
        Weights.load(tmp_path / "w.json")


def test_verbs(tmp_path, capsys):
    """What tune foresees is what rescore reaches, and no warning says that the set was seen."""
    lists, weights, out = (str(tmp_path / name) for name in ("dev.jsonl", "w.json", "dev.txt"))
    jsonl.write(make_lists(), lists)
    tuning = ["tune", "--nbest", lists, "--out", weights]
    assert main([*tuning, "--folds", "speaker"]) == 0
    said = capsys.readouterr().err
    score = Weights.load(weights).folds.score
    assert f"cross-validated, 3 folds by speaker: WER {score:.2f} by weights that did not" in said
    assert main(["rescore", "--nbest", lists, "--weights", weights, "--out", out]) == 0
    said = capsys.readouterr().err
    assert "cross-validated, 3 folds by speaker: 12 of 12 utterances by weights that did" in said
    assert "flatter" not in said
    assert main(["evaluate", "--ref", lists, "--hyp", out]) == 0
    assert f"WER {score:.2f}" in capsys.readouterr().out
    (tmp_path / "utt2spk").write_text("".join(f"{utt} {utt[-1]}\n" for utt in UTTERANCES))
    speakers = ["--utt2spk", str(tmp_path / "utt2spk")]
    assert main([*tuning, "--folds", "speaker", *speakers]) == 0
    assert "6 folds by speaker" in capsys.readouterr().err
    assert main([*tuning, *speakers]) == 1
    assert "--utt2spk: only --folds speaker asks for speakers" in capsys.readouterr().err
    assert main(tuning) == 0
    assert main(["rescore", "--nbest", lists, "--weights", weights, "--out", out]) == 0
    assert "its figures flatter" in capsys.readouterr().err
    assert Weights.load(weights).folds is None
    with pytest.raises(SystemExit):
        main([*tuning, "--folds", "one"])
    assert "'one' is none of N, speaker and speaker:N" in capsys.readouterr().err
