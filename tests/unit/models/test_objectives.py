"""Which positions each objective predicts from what."""

import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.models.objectives import (
    OBJECTIVES,
    CausalObjective,
    MaskedObjective,
    TwoWay,
    count_targets,
    excluded_ids,
)
from lmtools.text import Normaliser
from lmtools.text.corpus import binarise
from lmtools.text.subword import BOS, EOS, MASK, PAD, UNK, train

SENTENCES = [np.array([7, 8, 9]), np.array([], dtype=np.int64), np.array([10])]


def rows(examples):
    """[(sentence, position, target)] of the predictions."""
    width = examples.inputs.shape[1]
    return [
        (int(r) // width, int(r) % width, int(t))
        for r, t in zip(examples.rows, examples.targets, strict=True)
    ]


def test_causal_predicts_each_token_and_eos_from_the_left():
    examples = OBJECTIVES["causal"]().training(SENTENCES, None, 20)
    assert examples.inputs.tolist() == [[BOS, 7, 8, 9], [BOS, PAD, PAD, PAD], [BOS, 10, PAD, PAD]]
    assert rows(examples) == [
        (0, 0, 7),
        (0, 1, 8),
        (0, 2, 9),
        (0, 3, EOS),
        (1, 0, EOS),
        (2, 0, 10),
        (2, 1, EOS),
    ]


def test_autoencoding_trains_the_boundaries_and_scores_tokens_and_eos():
    objective = OBJECTIVES["autoencoding"]()
    training = objective.training(SENTENCES, None, 20)
    assert training.inputs[0].tolist() == [BOS, 7, 8, 9, EOS]
    assert [t for s, _, t in rows(training) if s == 0] == [BOS, 7, 8, 9, EOS]
    assert rows(objective.scoring(SENTENCES)) == [
        (0, 1, 7),
        (0, 2, 8),
        (0, 3, 9),
        (0, 4, EOS),
        (1, 1, EOS),
        (2, 1, 10),
        (2, 2, EOS),
    ]


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
    assert ((seen < 5) & (seen != MASK) & (seen != EOS)).sum() == 0, (
        "no special token is drawn as noise"
    )
    untouched = examples.inputs.numpy()[~chosen]
    assert set(untouched.tolist()) == {BOS, 7, EOS}


def test_masked_predicts_at_least_one_token_a_sentence_and_none_of_the_padding():
    for seed in range(50):
        examples = MaskedObjective().training(SENTENCES, np.random.default_rng(seed), 20)
        assert {s for s, _, _ in rows(examples)} == {0, 1, 2}
        assert all(
            position < length
            for (s, position, _) in rows(examples)
            for length in [int(examples.lengths[s])]
        )


@pytest.fixture(scope="module")
def spelled(tmp_path_factory):
    home = tmp_path_factory.mktemp("spelled")
    lines = ["b a b", "a", "abba b a"]
    (home / "text").write_text("\n".join([*lines, ""]))
    train("word", lines, None, Normaliser(), home / "words", min_count=2)
    made = train("char", lines, None, Normaliser(), home / "chars", words=home / "words")
    return made, binarise([home / "text"], made, home / "text.bin")


def test_two_way_predicts_each_word_from_either_side(spelled):
    vocabulary, corpus = spelled
    objective = TwoWay(vocabulary.words)
    examples = objective.training(corpus.batch(range(3)), None, vocabulary.size)
    mark, a, b = (vocabulary.vocabulary.index(piece) for piece in "▁ab")
    spellings = [[i for i in word if i != PAD] for word in examples.spellings.tolist()]
    assert spellings == [[BOS], [EOS], [mark, b, MASK], [mark, a, MASK], [mark, a, b, b, a, MASK]]
    assert examples.inputs.tolist() == [[0, 2, 3, 2, 1], [0, 3, 1, 0, 0], [0, 4, 2, 3, 1]]
    assert examples.lengths.tolist() == [5, 3, 5]
    ids = dict(zip("ab", vocabulary.words.words.encode("a b"), strict=True))
    # 10 = 2 T states
    found = [
        (int(r) // 10, int(r) % 10, int(t))
        for r, t in zip(examples.rows, examples.targets, strict=True)
    ]
    from_left = [
        (0, 0, ids["b"]),
        (0, 1, ids["a"]),
        (0, 2, ids["b"]),
        (0, 3, EOS),
        (1, 0, ids["a"]),
        (1, 1, EOS),
    ]
    from_left += [(2, 0, UNK), (2, 1, ids["b"]), (2, 2, ids["a"]), (2, 3, EOS)]
    from_right = [
        (0, 6, BOS),
        (0, 7, ids["b"]),
        (0, 8, ids["a"]),
        (0, 9, ids["b"]),
        (1, 6, BOS),
        (1, 7, ids["a"]),
    ]
    from_right += [(2, 6, BOS), (2, 7, UNK), (2, 8, ids["b"]), (2, 9, ids["a"])]
    assert found == sorted(from_left + from_right)


def test_two_way_goes_by_words_and_counts_them(spelled):
    vocabulary, corpus = spelled
    assert TwoWay.widths(corpus).tolist() == [3, 1, 3]
    assert CausalObjective.widths(corpus).tolist() == corpus.lengths.tolist()
    counts = count_targets(TwoWay, corpus, vocabulary.words.size)
    a, b = vocabulary.words.words.encode("a b")
    assert {int(i): int(counts[i]) for i in np.flatnonzero(counts)} == {
        a: 3,
        b: 3,
        UNK: 1,
        BOS: 3,
        EOS: 3,
    }
    assert excluded_ids(TwoWay) == (PAD, MASK)


def test_two_way_cuts_a_long_word_and_keeps_its_end(spelled):
    vocabulary, _ = spelled
    examples = TwoWay(vocabulary.words).scoring([vocabulary.encode("a" * 80)])
    assert examples.spellings.shape == (3, 50)
    assert examples.spellings[2, -1] == MASK
    assert (examples.spellings[2, :-1] != PAD).all()


def test_two_way_needs_spelled_words():
    with pytest.raises(
        UserError, match="make the vocabulary of its corpora with lmtools subword --words"
    ):
        TwoWay()
