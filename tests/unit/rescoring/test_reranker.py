"""Rerankers: what they learn that weights cannot, equality with scikit-learn, when they are taken,
and what is refused.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.evaluate.metrics import METRICS
from lmtools.formats import jsonl
from lmtools.rescoring import reranking
from lmtools.rescoring.features import gather
from lmtools.rescoring.lists import rescore
from lmtools.rescoring.reranker import BOOSTING, KINDS, LOGISTIC, name_inputs
from lmtools.rescoring.tuning import padded_statistics
from lmtools.rescoring.weights import Weights
from lmtools.types import Hypothesis, NBest

pytest.importorskip("sklearn", reason="scikit-learn is the extra rerank")


def make_lists(count: int, seed: int, noise: bool = False) -> list[NBest]:
    """Lists of short and of long sentences, with 2 scores: of short sentences `am` knows the right
    one, of long ones `lm`, and the other is noise; with `noise`, `am` knows all that is known.
    """
    rng, lists = np.random.default_rng(seed), []
    for place in range(count):
        words = [f"w{number}" for number in rng.integers(50, size=3 if place % 2 else 14)]
        texts = [" ".join([*words[:-1], f"{words[-1]}{other}"]) for other in "abcd"]
        right = int(rng.integers(4))
        scores = rng.normal(size=(4, 2))
        knows = 0 if noise or place % 2 else 1
        scores[right, knows] += 1 if noise else 3
        scores[:, 1 - knows] *= 3
        hyps = [
            Hypothesis(text, {"am": float(am), "lm": float(lm)})
            for text, (am, lm) in zip(texts, scores, strict=True)
        ]
        lists.append(NBest(f"s{place % 13}-{place}", tuple(hyps), texts[right]))
    return lists


def tune(tmp_path, lists, kind, *options) -> Weights:
    jsonl.write(lists, tmp_path / "dev.jsonl")
    argv = ["tune", "--nbest", str(tmp_path / "dev.jsonl"), "--reranker", kind, *options]
    assert main([*argv, "--out", str(tmp_path / "w.json")]) == 0
    return Weights.load(tmp_path / "w.json")


@pytest.fixture(scope="module", params=KINDS)
def learnt(request, tmp_path_factory):
    home = tmp_path_factory.mktemp(request.param)
    lists = make_lists(480, 0)
    return home, lists, tune(home, lists, request.param, "--folds", "speaker:4")


def score(lists: list[NBest]) -> float:
    return float(METRICS["wer"].score(padded_statistics(lists, "wer", "")[:, 0].sum(0)))


def test_it_learns_what_depends_on_length_and_chooses_so(learnt, capsys):
    home, lists, weights = learnt
    note = weights.search["reranker"]
    assert note["taken"] and note["with"] < 0.8 * note["without"]
    assert weights.folds.score == note["with"]
    features = gather(lists, {}, "lists", ["words"])
    assert score(rescore(lists, features, weights, "")) == pytest.approx(note["with"])
    alone = replace(weights, folds=None)
    assert score(rescore(lists, features, alone, "")) == pytest.approx(weights.dev.score)
    new = make_lists(200, 1)
    of_new = gather(new, {}, "lists", ["words"])
    plain = replace(alone, reranker=None)
    reached = score(rescore(new, of_new, alone, ""))
    assert reached < 0.85 * score(rescore(new, of_new, plain, ""))
    # a list alone is chosen from as among others
    jsonl.write(new[:1], home / "one.jsonl")
    argv = ["rescore", "--nbest", str(home / "one.jsonl"), "--weights", str(home / "w.json")]
    assert main([*argv, "--out", "-"]) == 0
    best = rescore(new, of_new, weights, "")[0].hyps[0].text
    assert capsys.readouterr().out == f"{new[0].utt} {best}\n"


@pytest.mark.parametrize("learnt", [LOGISTIC], indirect=True)
def test_lists_of_another_size_are_doubted(learnt, tmp_path, capsys):
    home, lists, _ = learnt
    short = [replace(one, hyps=one.hyps[:2]) for one in lists]
    for some, doubted in ((lists, False), (short, True), (short[:9], False)):
        jsonl.write(some, tmp_path / "n.jsonl")
        argv = ["rescore", "--nbest", str(tmp_path / "n.jsonl"), "--out", str(tmp_path / "t")]
        assert main([*argv, "--weights", str(home / "w.json")]) == 0
        assert ("of 4.0 hypotheses, these have 2.0" in capsys.readouterr().err) == doubted


def test_columns_of_noise_change_nothing(tmp_path):
    for seed in range(2):
        weights = tune(tmp_path, make_lists(360, seed, noise=True), LOGISTIC)
        assert weights.reranker is None and not weights.search["reranker"]["taken"]
        assert weights.folds is None and "reranker" not in json.loads(
            (tmp_path / "w.json").read_text()
        )


def test_scores_are_scikit_learns():
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 5)) * [1, 9, 0.1, 1, 1]
    gains = np.round(rows[:, 0] * rows[:, 3] + rng.normal(size=600))
    facts = {"inputs": tuple("abcde"), "spreads": {}, "threshold": 0.0, "size": 4.0}
    known, units = gains != 0, rows[gains != 0].std(0)
    model = LogisticRegression(C=reranking.PENALTY, max_iter=2000)
    counts = np.abs(gains[known])
    model.fit(rows[known] / units, gains[known] > 0, sample_weight=counts / counts.mean())
    ours = reranking.fit_logistic(rows, gains, facts).predict(rows)
    assert np.abs(ours - model.decision_function(rows / units)).max() < 1e-12
    trees = HistGradientBoostingRegressor(**reranking.BOOSTING).fit(rows, gains)
    new = rng.normal(size=(100, 5))
    ours = reranking.fit_boosting(rows, gains, facts)
    assert len(ours.trees) == reranking.BOOSTING["max_iter"]
    assert np.abs(ours.predict(new) - trees.predict(new)).max() < 1e-12


@pytest.mark.parametrize("kind", [LOGISTIC, BOOSTING])
def test_a_threshold_is_between_scores_and_saves_surely(kind):
    scores = np.array([5.0, 4.0, 4.0, 3.0, -1.0, -np.inf])
    gains = np.array([2, 2, 2, -1, 9, 9])
    assert reranking.find_threshold(scores, gains) == 3.5
    assert reranking.find_threshold(scores, -gains) is None
    assert reranking.find_threshold(np.full(3, -np.inf), gains[:3]) is None
    names = name_inputs(["am", "words"], kind)
    assert len(names) == len({*names})


def damage(tree, name):
    part = tree["reranker"]
    if name == "way up":
        part["trees"][0]["left"][1:2] = [0]
        part["trees"][0]["inputs"][1] = 0
    elif name == "size":
        part["trees"] = part["trees"] * 20
    elif name == "input":
        part["trees"][0]["inputs"][0] = 999
    elif name == "names":
        part["inputs"][0] = "other"
    elif name == "spreads":
        part["spreads"]["am"] = 0.0
    else:
        part["more"] = 1


@pytest.mark.parametrize("learnt", [BOOSTING], indirect=True)
@pytest.mark.parametrize("name", ["way up", "size", "input", "names", "spreads", "more"])
def test_damaged_rerankers_are_refused(learnt, name, tmp_path):
    tree = json.loads((learnt[0] / "w.json").read_text())
    damage(tree, name)
    (tmp_path / "w.json").write_text(json.dumps(tree))
    with pytest.raises(UserError, match=r"w\.json.*write it again with lmtools tune"):
        Weights.load(tmp_path / "w.json")


def test_it_is_not_for_lazy_rescoring(learnt, tmp_path, capsys):
    home, _, _ = learnt
    argv = ["rescore", "--nbest", str(home / "dev.jsonl"), "--weights", str(home / "w.json")]
    assert main([*argv, "--lm", "lm=nowhere", "--out", str(tmp_path / "t")]) == 1
    assert "its reranker needs the scores of all hypotheses at once" in capsys.readouterr().err


def test_it_does_not_override_the_margin_of_new_hypotheses(tmp_path, capsys):
    lists = make_lists(40, 0)
    new = Hypothesis("new", {"am": 0.0, "lm": 0.0, "near": -1.0})
    lists = [
        replace(
            nbest,
            hyps=(*(replace(hyp, scores={**hyp.scores, "near": 0.0}) for hyp in nbest.hyps), new),
        )
        for nbest in lists
    ]
    jsonl.write(lists, tmp_path / "dev.jsonl")
    argv = ["tune", "--nbest", str(tmp_path / "dev.jsonl"), "--reranker", LOGISTIC]
    assert main([*argv, "--out", str(tmp_path / "w.json")]) == 1
    assert "margin a reranker does not keep; leave out --reranker" in capsys.readouterr().err
    assert not (tmp_path / "w.json").exists()
