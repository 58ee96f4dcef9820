"""Which positions each objective predicts from what."""

import numpy as np
import pytest

from lmtools.objectives import OBJECTIVES, MaskedObjective
from lmtools.subword import BOS, EOS, MASK, PAD

SENTENCES = [np.array([7, 8, 9]), np.array([], dtype=np.int64), np.array([10])]


def rows(examples):
    """[(sentence, position, target)] of the predictions."""
    width = examples.inputs.shape[1]
    return [(int(r) // width, int(r) % width, int(t)) for r, t in zip(examples.rows, examples.targets, strict=True)]


def test_causal_predicts_each_token_and_eos_from_the_left():
    examples = OBJECTIVES["causal"]().training(SENTENCES, None, 20)
    assert examples.inputs.tolist() == [[BOS, 7, 8, 9], [BOS, PAD, PAD, PAD], [BOS, 10, PAD, PAD]]
    assert rows(examples) == [(0, 0, 7), (0, 1, 8), (0, 2, 9), (0, 3, EOS), (1, 0, EOS), (2, 0, 10), (2, 1, EOS)]


def test_autoencoding_trains_the_boundaries_and_scores_tokens_and_eos():
    objective = OBJECTIVES["autoencoding"]()
    training = objective.training(SENTENCES, None, 20)
    assert training.inputs[0].tolist() == [BOS, 7, 8, 9, EOS]
    assert [t for s, _, t in rows(training) if s == 0] == [BOS, 7, 8, 9, EOS]
    assert rows(objective.scoring(SENTENCES)) == [(0, 1, 7), (0, 2, 8), (0, 3, 9), (0, 4, EOS), (1, 1, EOS), (2, 1, 10), (2, 2, EOS)]


def test_masked_replaces_80_10_10_of_15_percent():
    generator = np.random.default_rng(5)
    sentences = [np.full(98, 7)] * 2000
    examples = MaskedObjective().training(sentences, generator, 1005)
    chosen = np.zeros(examples.inputs.shape, bool).reshape(-1)
    chosen[examples.rows] = True
    chosen = chosen.reshape(examples.inputs.shape)
    assert not chosen[:, 0].any(), "BOS is never predicted"
    assert chosen[:, 1:].mean() == pytest.approx(0.15, abs=0.01)
    seen = examples.inputs.numpy()[chosen]
    assert (seen == MASK).mean() == pytest.approx(0.8, abs=0.02)
    assert ((seen == 7) | (seen == EOS)).mean() == pytest.approx(0.1, abs=0.02)
    assert ((seen < 5) & (seen != MASK) & (seen != EOS)).sum() == 0, "no special token is drawn as noise"
    untouched = examples.inputs.numpy()[~chosen]
    assert set(untouched.tolist()) == {BOS, 7, EOS}


def test_masked_predicts_at_least_one_token_a_sentence_and_none_of_the_padding():
    for seed in range(50):
        examples = MaskedObjective().training(SENTENCES, np.random.default_rng(seed), 20)
        assert {s for s, _, _ in rows(examples)} == {0, 1, 2}
        assert all(position < length for (s, position, _) in rows(examples) for length in [int(examples.lengths[s])])
