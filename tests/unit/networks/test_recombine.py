"""New hypotheses out of a list's own words."""

import itertools

import numpy as np
import pytest

from lmtools.cli import main
from lmtools.formats import jsonl
from lmtools.networks.lists import (
    MARK,
    NetworkPlan,
    fit_ridge,
    predict_scores,
    rank_lists,
    recombine_lists,
)
from lmtools.types import NBest

# what the first pass pays for each word in each of three places
PRICES = ({"a": -1.0, "x": -2.5}, {"b": -2.0, "y": -2.25}, {"c": -1.0, "z": -4.0})


def price(words):
    return sum(prices[word] for prices, word in zip(PRICES, words, strict=True))


def recombine(nbest, most=5):
    ranked = rank_lists([nbest], None, None, "F")
    (longer,) = recombine_lists([nbest], ranked, NetworkPlan(), most)
    return longer


def test_new_paths_have_the_scores_that_the_first_pass_would_give():
    """Six of eight sequences are there; the other two come out with their sums, nearly."""
    every = [" ".join(words) for words in itertools.product(*PRICES)]
    known = [text for text in every if text not in ("a b c", "x y z")]
    scores = [price(text.split()) for text in known]
    nbest = NBest.of("u", known, am=scores, length=[3.0] * 6)
    longer = recombine(nbest)
    assert longer.hyps[:6] == nbest.hyps
    new = {hyp.text: hyp for hyp in longer.hyps[6:]}
    assert list(new) == ["a b c", "x y z"]  # most probable first
    for text, hyp in new.items():
        assert hyp.extra == {MARK: "yes"}
        assert hyp.scores["am"] == pytest.approx(price(text.split()), abs=0.3)
        assert hyp.scores["length"] == pytest.approx(3)
    assert len(recombine(nbest, 1).hyps) == 7


@pytest.mark.parametrize("texts", [[], ["a b"], ["a b", "a c"], ["a b", "a b"]])
def test_nothing_new(texts):
    nbest = NBest.of("u", texts, am=[0.0] * len(texts))
    assert recombine(nbest) == nbest


def test_ridge_is_the_best_of_its_penalties():
    """Weights are those of the normal equations, with the penalty of the least squared errors when
    each row is left out and fitted anew.
    """
    rng = np.random.default_rng(1)
    design = rng.integers(0, 2, size=(12, 5)).astype(float)
    design -= design.mean(0)
    targets = design @ rng.normal(size=(5, 2)) + rng.normal(size=(12, 2)) * [0.1, 3.0]
    targets -= targets.mean(0)

    def solve(rows, penalty):
        x, y = design[rows], targets[rows]
        return np.linalg.solve(x.T @ x + penalty * np.eye(5), x.T @ y)

    every = np.arange(12)
    fitted = fit_ridge(design, targets)
    for name in range(2):
        errors = {
            penalty: sum(
                (targets[i, name] - design[i] @ solve(every != i, penalty)[:, name]) ** 2
                for i in every
            )
            for penalty in (0.01, 0.1, 1.0, 10.0)
        }
        best = min(errors, key=errors.get)
        assert fitted[:, name] == pytest.approx(solve(every, best)[:, name])


def test_unknown_places_count_nothing():
    known = [[(0, "a")], [(0, "b")]]
    values = predict_scores(known, np.array([[1.0], [3.0]]), [[(0, "c")]])
    assert values == pytest.approx(2.0, abs=0.1)


def test_verb(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    nbest = NBest.of("u", ["x b c", "a y c", "a b z"], "a b c", am=[-1.0, -1.1, -1.2])
    jsonl.write([nbest, NBest("v", (), "a")], "n.jsonl")
    assert main(["network", "recombine", "--nbest", "n.jsonl", "--out", "new.jsonl"]) == 0
    printed = capsys.readouterr().err
    assert "5 new hypotheses in 1 of 2 lists" in printed
    assert "oracle WER 50.00 -> 25.00" in printed
    longer, _ = jsonl.read("new.jsonl")
    assert "a b c" in {hyp.text for hyp in longer.hyps[3:]}
    assert (
        main(["network", "recombine", "--nbest", "n.jsonl", "--scores", "x=y", "--out", "z"]) == 1
    )
