"""Confidences by their definitions, calibrations, and `lmtools network calibrate` and `measure`."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.networks import files as networks
from lmtools.networks.confidence import (
    CLIP,
    METHODS,
    JudgedWords,
    judge_words,
    learn_calibration,
    load_calibration,
    save_calibration,
)
from lmtools.types import ConfusionNetwork, Slot


def network(utt, words):
    return ConfusionNetwork(utt, tuple(Slot({w: 1.0}, w, c) for w, c in words))


def random_words(seed, count=60):
    rng = np.random.default_rng(seed)
    confidence = rng.choice([0, 0.2, 0.5, 0.77, 1], size=count) if seed % 2 else rng.random(count)
    return JudgedWords(confidence, rng.random(count) < confidence)


@pytest.mark.parametrize("seed", range(6))
def test_definitions(seed):
    judged = random_words(seed)
    pairs = list(zip(judged.confidence.tolist(), judged.correct.tolist(), strict=True))
    right = sum(correct for _, correct in pairs) / len(pairs)
    most = -sum(math.log2(right if correct else 1 - right) for _, correct in pairs)
    left = sum(
        -math.log2(min(max(c if correct else 1 - c, CLIP), 1 - CLIP)) for c, correct in pairs
    )
    assert judged.cross_entropy == pytest.approx((most - left) / most)
    wins = [(p > q) + (p == q) / 2 for p, one in pairs for q, other in pairs if one and not other]
    assert judged.area == pytest.approx(sum(wins) / len(wins))
    error = 0
    for low in range(10):
        inside = [(c, r) for c, r in pairs if min(int(c * 10), 9) == low]
        error += abs(sum(c - r for c, r in inside)) / len(pairs)
    assert judged.calibration_error == pytest.approx(error)


def test_ends():
    same = JudgedWords(np.full(8, 0.75), np.arange(8) < 6)
    assert same.cross_entropy == pytest.approx(0)
    assert same.calibration_error == pytest.approx(0)
    assert same.area == 0.5
    perfect = JudgedWords(np.array([1.0, 1.0, 0.0]), np.array([True, True, False]))
    assert perfect.cross_entropy > 0.999 and perfect.area == 1
    for correct in (np.ones(3, dtype=bool), np.zeros(3, dtype=bool)):
        judged = JudgedWords(np.array([0.9, 0.5, 0.1]), correct)
        assert math.isnan(judged.cross_entropy) and math.isnan(judged.area)


def test_doubts():
    """Confidences that are the same, or the wrong way round, are told; chance is not."""
    correct = np.arange(60) % 4 > 0
    falling = JudgedWords(np.where(correct, 0.2, 0.9), correct)
    assert "wrong words have more confidence" in next(falling.doubts())
    assert not list(JudgedWords(1 - falling.confidence, correct).doubts())
    assert not list(JudgedWords(np.random.default_rng(0).random(60), correct).doubts())
    assert next(JudgedWords(np.ones(60), correct).doubts()).startswith("all 60 confidences are 1")
    assert next(JudgedWords(np.ones(3), np.ones(3, bool)).doubts()).startswith("all 3 words are")


def test_words_are_judged_by_alignment():
    networks = [network("u", [("a", 0.9), ("x", 0.3), ("c", 0.8)]), network("v", [("d", 0.5)])]
    judged = judge_words(networks, {"u": "a b c", "v": ""})
    assert judged.correct.tolist() == [True, False, True, False]
    assert judged.confidence.tolist() == [0.9, 0.3, 0.8, 0.5]
    with pytest.raises(UserError, match="no words"):
        judge_words([network("u", [])], {"u": "a"})


def overconfident(seed, count=4000):
    """Words whose true probability has a logit half as large as their confidence's, less 0.5."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(1, 2, size=count)
    true = 1 / (1 + np.exp(-(0.5 * logits - 0.5)))
    return JudgedWords(1 / (1 + np.exp(-logits)), rng.random(count) < true)


def after(calibration, judged):
    return JudgedWords(calibration.apply(judged.confidence), judged.correct)


@pytest.mark.parametrize("method", METHODS)
def test_held_out_words_are_better_calibrated(method):
    dev, test = overconfident(1), overconfident(2)
    calibration = learn_calibration(dev, method)
    assert after(calibration, test).cross_entropy > test.cross_entropy
    assert after(calibration, test).calibration_error < test.calibration_error
    if method != "temperature":  # which has no shift
        assert after(calibration, test).calibration_error < 0.03
    values = calibration.apply(np.linspace(0, 1, 101))
    assert (np.diff(values) >= 0).all() and values.min() > 0 and values.max() < 1


def test_isotonic_is_the_best_rising_map():
    """Pooled neighbours by hand, each with half a word right of one more."""
    right = np.repeat([False, True, False, True], [12, 18, 10, 20])
    judged = JudgedWords(np.repeat([0.2, 0.4, 0.8], 20), right)
    calibration = learn_calibration(judged, "isotonic")
    assert calibration.inputs == (0.2, 0.4, 0.8)
    assert calibration.outputs == pytest.approx((8.5 / 21, 10.5 / 21, 20.5 / 21))
    falling = JudgedWords(judged.confidence, right[::-1])  # 20, 10 and 8 of 20: all pooled
    assert learn_calibration(falling, "isotonic").outputs == pytest.approx([38.5 / 61] * 3)


@pytest.mark.parametrize("method", METHODS)
def test_reads_back(tmp_path, method):
    calibration = learn_calibration(overconfident(1, 100), method)
    save_calibration(calibration, tmp_path / "c.json")
    assert load_calibration(tmp_path / "c.json") == calibration


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"method": "none"},
        {"method": "logistic", "slope": "x", "shift": 0},
        {"method": "logistic", "slope": [], "shift": 0},
        {"method": "isotonic", "inputs": [0.5, 0.2], "outputs": [0.1, 0.2]},
        {"method": "isotonic", "inputs": [0.2], "outputs": [1.5]},
        {"method": "isotonic", "inputs": [0.2], "outputs": [[0.5]]},
    ],
)
def test_what_is_none(tmp_path, tree):
    (tmp_path / "c.json").write_text(json.dumps(tree))
    with pytest.raises(UserError, match="write it again with lmtools network calibrate"):
        load_calibration(tmp_path / "c.json")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Networks of dev and test whose words are less sure than they seem."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("dev", "test")):
        judged = overconfident(seed, 400)
        pairs = zip(judged.confidence.tolist(), judged.correct.tolist(), strict=True)
        rows = [
            ConfusionNetwork(
                f"u{n}",
                (Slot({"a": max(p, 1e-6), "b": 1 - max(p, 1e-6)}, "a", p),),
                "a" if right else "c",
            )
            for n, (p, right) in enumerate(pairs)
        ]
        networks.write(rows, f"{name}.json")
    return tmp_path


def test_verbs(here, capsys):
    assert main(["network", "calibrate", "dev.json", "--out", "c.json"]) == 0
    printed = capsys.readouterr().err
    assert "dev.json: 400 words" in printed and "on the set that it was learnt on" in printed
    rover = "network rover test.json test.json --method average --alpha 0 --calibration c.json"
    assert main([*rover.split(), "--out", "after.json"]) == 0
    assert main(["network", "measure", "test.json", "after.json", "--figure", "f.png"]) == 0
    before, behind = capsys.readouterr().out.splitlines()
    assert float(before.split("NCE ")[1].split(",")[0]) < float(
        behind.split("NCE ")[1].split(",")[0]
    )
    assert (here / "f.png").read_bytes().startswith(b"\x89PNG")
    first = next(networks.read("after.json"))
    assert first.slots[0].confidence != first.slots[0].words["a"]


def test_what_no_calibration_mends_is_told(here, capsys):
    """Words that are all right have no NCE; words of the same confidence cannot be told apart."""
    rows = [
        ConfusionNetwork(f"u{n}", (Slot({"a": 0.7, "b": 0.3}, "a", 0.7),), "a") for n in range(30)
    ]
    networks.write(rows, "right.json")
    networks.write([replace(one, ref="c") if one.utt < "u2" else one for one in rows], "same.json")
    assert main(["network", "measure", "right.json", "same.json", "--figure", "f.png"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == (
        "right.json: 30 words, 100.0% right; NCE -, ECE 30.00%, ROC area -; WER 0.00"
    )
    assert "warning: right.json: all 30 words are right" in said.err
    for verb in ("measure", "calibrate"):
        out = ["--out", "c.json"] if verb == "calibrate" else []
        assert main(["network", verb, "same.json", *out]) == 0
        said = capsys.readouterr().err.splitlines()
        assert said[0] == "warning: same.json: all 30 confidences are 0.7: they tell nothing"


def test_refusals(here, capsys):
    (here / "ref").write_text("u0 a\n")
    assert main(["network", "measure", "test.json", "--ref", "ref"]) == 1
    assert "ref: no reference of utterance 'u1'" in capsys.readouterr().err
    few = [ConfusionNetwork("u", (Slot({"a": 1.0}, "a", 1.0),), "a")]
    networks.write(few, "few.json")
    assert main(["network", "calibrate", "few.json", "--out", "c.json"]) == 1
    assert "1 words to calibrate on" in capsys.readouterr().err
    assert not (here / "c.json").exists()
