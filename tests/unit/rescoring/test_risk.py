"""Minimum Bayes risk: expected utilities against brute force, and `lmtools mbr` as a recipe calls
it.
"""

import io
import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.evaluate.edits import align
from lmtools.evaluate.metrics import METRICS
from lmtools.evaluate.pairs import sentence_signature
from lmtools.formats import FORMATS, jsonl, kaldi_text, scores
from lmtools.rescoring.risk import Risk, minimum_risk
from lmtools.types import Hypothesis, NBest

texts = st.lists(st.sampled_from(["the", "cat", "sat,", "Mat."]), max_size=6).map(" ".join)
lists = st.lists(st.tuples(texts, st.floats(-30, 0)), min_size=1, max_size=7)


def nbest(pairs, utt="u"):
    return NBest(utt, tuple(Hypothesis(text, {"am": score}) for text, score in pairs))


def risks(pairs, **how):
    return minimum_risk([nbest(pairs)], Risk(**how), "x").log_prob["u"]


@settings(max_examples=60, deadline=None)
@given(lists, st.sampled_from(sorted(METRICS)), st.floats(0, 2), st.integers(1, 9))
def test_expected_utility_is_brute_forces(pairs, utility, scale, depth):
    first = pairs[:depth]
    values = np.array([score for _, score in first])
    measure, hyps = METRICS[utility], [hyp for hyp, _ in pairs]
    utilities = [measure.gain(measure.statistics(ref, hyps)) for ref, _ in first]
    wanted = np.average(utilities, axis=0, weights=np.exp(scale * (values - values.max())))
    found = risks(pairs, utility=utility, scale=scale, depth=depth)
    assert found == pytest.approx(wanted, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(lists)
def test_without_scores_wer_chooses_the_median_string(pairs):
    words = [text.split() for text, _ in pairs]
    distances = [sum(align(ref, hyp).counts.errors for ref in words) for hyp in words]
    assert distances[risks(pairs, utility="wer", scale=0).argmax()] == min(distances)


@settings(max_examples=40, deadline=None)
@given(lists, st.sampled_from(["bleu", "chrf", "wer", "cer"]), st.randoms(use_true_random=False))
def test_order_changes_no_bit(pairs, utility, rng: random.Random):
    order = rng.sample(range(len(pairs)), len(pairs))
    assert np.array_equal(
        risks([pairs[i] for i in order], utility=utility), risks(pairs, utility=utility)[order]
    )
    doubled = risks(pairs + pairs, utility=utility)
    assert np.array_equal(doubled[: len(pairs)], doubled[len(pairs) :])


def test_which_score_the_posterior_is_made_of():
    hyps = [("a b", {"norm": -1.0, "am": -9.0}), ("a c", {"norm": -2.0, "am": -1.0})]
    some = [NBest("u", tuple(Hypothesis(text, own) for text, own in hyps)), NBest("empty", ())]
    for score, best in ((None, 1), ("am", 1), ("norm", 0)):
        table = minimum_risk(some, Risk("wer", score=score), "x")
        assert table.log_prob["u"].argmax() == best
        assert table.signature["posterior"] == (score or "am")
        assert table.tokens["u"].tolist() == [2, 2] and not len(table.log_prob["empty"])
    with pytest.raises(UserError, match=r"^x: has no score 'lm'; give --score one of norm, am$"):
        minimum_risk(some, Risk(score="lm"), "x")
    bare = minimum_risk([NBest.of("u", ["a", "b", "c"])], Risk("wer", scale=2), "x")
    ranks = np.array([1, 1 / 4, 1 / 9])  # (1 + rank) ** -scale
    assert bare.signature["posterior"] == "rank"
    assert bare.log_prob["u"] == pytest.approx(ranks / ranks.sum() - 1)


def test_indicators_of_systems_are_no_scores():
    """Pooled outputs count alike, whatever comes first; a score beside them is taken."""
    texts = {"bad": "x y z", "good": "a b c", "near": "a b d"}
    hyps = [
        Hypothesis(text, {f"system:{other}": float(other == name) for other in texts})
        for name, text in texts.items()
    ]
    table = minimum_risk([NBest("u", tuple(hyps))], Risk("wer", scale=50), "x")
    assert table.signature["posterior"] == "uniform"
    assert table.log_prob["u"] == pytest.approx([-2, -4 / 3, -4 / 3])
    scored = NBest("u", tuple(hyp.with_scores({**hyp.scores, "own": -1.0}) for hyp in hyps))
    assert minimum_risk([scored], Risk("wer"), "x").signature["posterior"] == "own"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The first hypothesis is an outlier; the reference is what others share."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(3)
    words = [f"w{number}" for number in range(40)]
    sets = []
    for number in range(20):
        ref = rng.sample(words, 7)
        variants = [" ".join([*ref[:at], "x", *ref[at + 1 :]]) for at in rng.sample(range(7), 4)]
        hyps = [(" ".join(rng.sample(words, 7)), -1.0), (" ".join(ref), -1.2)]
        hyps += [(text, -1.3) for text in variants]
        sets.append(NBest(f"u{number}", nbest(hyps).hyps, " ".join(ref)))
    more = NBest("one", nbest([("a", -1.0)]).hyps, "a"), NBest("none", (), "b")
    jsonl.write([*sets, *more], "dev.jsonl")
    FORMATS.write(sets, "dev.moses", "moses")
    return tmp_path


def test_the_column_is_tuned_and_rescored_with(here, capsys):
    assert main(["mbr", "--nbest", "dev.jsonl", "--out", "mbr.scores"]) == 0
    said = (
        "mbr.scores: expected BLEU of 121 hypotheses of 22 utterances; another than the first is"
        " best in 20 lists\n"
    )
    assert capsys.readouterr().err == said
    table = scores.read("mbr.scores")
    assert table.signature["utility"] == sentence_signature("bleu")
    assert table.signature["scale"] == "1.0"
    assert table.log_prob["one"] == pytest.approx([100]) and "none" not in table.log_prob
    common = "--nbest", "dev.jsonl", "--scores", "mbr=mbr.scores"
    assert main(["tune", *common, "--metric", "bleu", "--fix", "mbr=1000", "--out", "w.json"]) == 0
    assert main(["rescore", *common, "--weights", "w.json", "--out", "hyp.txt"]) == 0
    refs = {some.utt: some.ref for some in jsonl.read("dev.jsonl")} | {"none": ""}
    assert kaldi_text.read("hyp.txt") == refs
    assert json.loads((here / "w.json").read_text())["dev"]["bleu"] > 99


def test_pipes_and_formats(here, capsys, monkeypatch):
    given = ["mbr", "--utility", "wer", "--depth", "3"]
    assert main([*given, "--nbest", "dev.jsonl", "--out", "wer.scores"]) == 0
    piped = io.TextIOWrapper(io.BytesIO((here / "dev.jsonl").read_bytes()))
    monkeypatch.setattr("sys.stdin", piped)
    capsys.readouterr()
    assert main([*given, "--nbest", "-", "--out", "-"]) == 0
    assert capsys.readouterr().out == (here / "wer.scores").read_text()
    assert main(["mbr", "--nbest", "dev.moses", "--format", "moses", "--out", "moses.scores"]) == 0
    assert scores.read("moses.scores").signature["posterior"] == "am"


def test_wrong_usage(here, capsys):
    for wrong in (["--scale", "-1"], ["--scale", "inf"], ["--depth", "0"], ["--utility", "rouge"]):
        with pytest.raises(SystemExit) as done:
            main(["mbr", "--nbest", "dev.jsonl", "--out", "o", *wrong])
        assert done.value.code == 2
    (here / "nothing.jsonl").write_text("")
    assert main(["mbr", "--nbest", "nothing.jsonl", "--format", "jsonl", "--out", "o"]) == 1
    assert "no utterances" in capsys.readouterr().err and not (here / "o").exists()
