"""Sampled cuts of words: their chances against every cut there is and against SentencePiece's."""

import math
import random
from collections import Counter

import numpy as np
import pytest
import sentencepiece

from lmtools import UserError
from lmtools.text import Normaliser
from lmtools.text.subword import UNK, train
from lmtools.text.subword.spelled import SampledCuts

SYLLABLES = ("ka", "to", "mi", "ren", "dos", "lu", "vi", "stan")
LINES = []
for line in range(300):
    drawn = random.Random(line).choices(SYLLABLES, k=12)
    LINES.append(" ".join("".join(drawn[n : n + 2 + line % 3]) for n in range(0, 12, 4)))
DRAWS = 4000


def learn(home, kind, size):
    train("word", LINES, None, Normaliser(), home / "words", min_count=2)
    return train(kind, LINES, size, Normaliser(), home / kind, words=home / "words")


@pytest.fixture(scope="module")
def spelled(tmp_path_factory):
    return learn(tmp_path_factory.mktemp("cuts"), "unigram", 60)


def every_cut(text, scores):
    """All cuts of a text into pieces, with the sums of their scores."""
    if not text:
        return {(): 0.0}
    return {
        (text[:end], *rest): scores[text[:end]] + score
        for end in range(1, len(text) + 1)
        if text[:end] in scores
        for rest, score in every_cut(text[end:], scores).items()
    }


def chances(spelled, word, alpha):
    processor = spelled.pieces_model.processor
    scores = {p: processor.get_score(processor.piece_to_id(p)) for p in spelled.vocabulary[5:]}
    weights = {c: math.exp(alpha * score) for c, score in every_cut(f"▁{word}", scores).items()}
    return {cut: weight / sum(weights.values()) for cut, weight in weights.items()}


def distance(drawn: Counter, expected: dict) -> float:
    """Half the sum of differences of shares and chances."""
    total = sum(drawn.values())
    return sum(abs(drawn[cut] / total - p) for cut, p in expected.items()) / 2


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.3])
def test_cuts_have_their_chances_and_those_of_sentencepiece(spelled, alpha):
    cuts, generator = SampledCuts(spelled, alpha), np.random.default_rng(1)
    word = "rendostolumi"
    expected, ids = chances(spelled, word, alpha), spelled.encode(word)
    assert 20 < len(expected) < 500
    drawn = Counter(
        tuple(spelled.vocabulary[i] for i in cuts.draw(ids, generator)) for _ in range(DRAWS)
    )
    near = 2 * math.sqrt(len(expected) / DRAWS)
    assert set(drawn) <= set(expected) and distance(drawn, expected) < near
    sentencepiece.set_random_generator_seed(1)
    theirs = Counter(
        tuple(
            spelled.pieces_model.processor.encode(
                word, out_type=str, enable_sampling=True, alpha=alpha, nbest_size=-1
            )
        )
        for _ in range(DRAWS)
    )
    assert distance(theirs, expected) < near
    other = chances(spelled, word, alpha + 1)  # the distance tells powers apart
    assert distance(drawn, other) > near


def test_the_words_stay_and_so_do_their_targets(spelled):
    cuts, text = SampledCuts(spelled, 0.1), "stanka mitolu renrendos vika"
    ids = spelled.encode(text)
    drawn = [cuts.draw(ids, np.random.default_rng(seed)).tolist() for seed in range(9)]
    assert len(set(map(tuple, drawn))) > 3
    targets = list(map(spelled.words.id_of, spelled.words.split(ids)))
    for other in drawn:
        assert spelled.decode(other) == text
        assert list(map(spelled.words.id_of, spelled.words.split(other))) == targets
    assert drawn[3] == cuts.draw(ids, np.random.default_rng(3)).tolist()


def test_a_word_with_an_unknown_character_and_a_great_power_keep_the_best_cut(spelled):
    ids = spelled.encode("kato miß stanren")
    assert UNK in ids
    assert SampledCuts(spelled, 500.0).draw(ids, np.random.default_rng(1)).tolist() == ids
    (odd,) = (w for w in spelled.words.split(ids) if UNK in w)
    cuts = [SampledCuts(spelled, 0.0).draw(ids, np.random.default_rng(s)) for s in range(9)]
    assert all(spelled.words.split(cut)[1] == odd for cut in cuts)


def test_other_vocabularies_are_refused(tmp_path, spelled):
    for subword, kind in (
        (learn(tmp_path, "bpe", 60), "bpe"),
        (spelled.pieces_model, "unigram"),
        (spelled.words.words, "word"),
    ):
        with pytest.raises(UserError, match=f"unigram pieces spell, not {kind}; make the vocab"):
            SampledCuts(subword, 0.1)
