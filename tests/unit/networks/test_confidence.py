"""Measures of confidences by their definitions."""

import itertools
import math

import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.networks.confidence import CLIP, JudgedWords, judge_words
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


def test_roc_rises():
    for first, second in itertools.pairwise(random_words(3).roc().tolist()):
        assert first[0] <= second[0] and first[1] <= second[1]
