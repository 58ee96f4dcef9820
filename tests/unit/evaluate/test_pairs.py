import numpy as np
import pytest
import sacrebleu.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.evaluate import pairs
from lmtools.evaluate.metrics import METRICS
from lmtools.evaluate.pairs import pair_gains

SACRE = {
    "bleu": sacrebleu.metrics.BLEU(effective_order=True),
    "chrf": sacrebleu.metrics.CHRF(),
    "ter": sacrebleu.metrics.TER(),
}
SIGN = {"bleu": 1, "chrf": 1, "ter": -1}
WORDS = [
    *("the", "the", "a", "Katze", "sat,", "on.", "naïve", "猫が", "𝄞", "&amp;", "3.5", "a-b"),
    *("\u00a0", "  ", "…", "e\u0301"),
]
lists = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), min_size=1, max_size=6)
CORNERS = [
    *("", " ", "a", "a.", "a a a a a a a", "a b", "b a", "a a", "abcdefg", "Zoë läuft."),
    *("\ud800 x", "a b c d e f g", "<skipped> a"),
]


def one_by_one(metric, texts, refs):
    return [
        [SIGN[metric] * SACRE[metric].sentence_score(text, [texts[ref]]).score for ref in refs]
        for text in texts
    ]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["bleu", "chrf"]), lists, st.data())
def test_all_pairs_are_sacrebleus_sentence_scores(metric, texts, data):
    refs = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=4))
    found = pair_gains(metric, texts, refs)
    assert found.shape == (len(texts), len(refs))
    assert found == pytest.approx(
        np.array(one_by_one(metric, texts, refs)).reshape(found.shape), abs=1e-9
    )


@pytest.mark.parametrize("metric", SACRE)
@pytest.mark.parametrize("block", [1, 30, pairs.BLOCK])
def test_corner_cases(metric, block, monkeypatch):
    """However few n-grams are counted at once."""
    monkeypatch.setattr(pairs, "BLOCK", block)
    refs = list(range(len(CORNERS)))
    assert pair_gains(metric, CORNERS, refs) == pytest.approx(
        np.array(one_by_one(metric, CORNERS, refs)), abs=1e-9
    )


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["wer", "cer"]), lists)
def test_edits_are_those_of_the_metric(metric, texts):
    measure = METRICS[metric]
    wanted = np.stack([measure.gain(measure.statistics(ref, texts)) for ref in texts], axis=1)
    assert np.array_equal(pair_gains(metric, texts, range(len(texts))), wanted)
