"""Contextual word vectors: whose they are, in which order, and the file that holds them."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from spelled import random_elmo
from toys import sentences
from unit.vectors.helpers import embed_words

from lmtools.base.errors import UserError
from lmtools.models.checkpoint import load_model
from lmtools.models.objectives import END
from lmtools.text.subword import BOS, EOS
from lmtools.vectors import words as module
from lmtools.vectors.files import write_words
from lmtools.vectors.words import Embedded, WordVectors

TEXTS = ["The king", "", "a  Queen unheard-of", "ζ", "  ", *sentences(30, 5), "the king"]


@pytest.fixture(scope="module", params=[("char", None), ("bpe", 45)], ids=["char", "bpe"])
def lm(request, tmp_path_factory):
    return random_elmo(tmp_path_factory.mktemp("elmo"), *request.param)


@pytest.fixture
def lines():
    """Vectors of three lines of 2, 0 and 3 words, two layers, six values."""
    rng = np.random.default_rng(1)
    words = (["a", "b"], [], ["c", "d", "é"])
    return [
        Embedded(" ".join(some) + " ", some, rng.random((len(some), 2, 6), dtype=np.float32))
        for some in words
    ]


def by_hand(lm, text: str) -> np.ndarray:
    """The vectors (words, layers, 2 D) of one text alone, spelled out here."""
    model, vocabulary = load_model(lm)
    words = [
        (BOS, END),
        *((*word, END) for word in vocabulary.words.split(vocabulary.encode(text))),
        (EOS, END),
    ]
    longest = max(map(len, words))
    spellings = torch.tensor([[*word, *[0] * (longest - len(word))] for word in words])
    spellings[[0, -1], 1] = 0  # the boundaries have no end mark
    with torch.no_grad():
        layers = list(
            model.trunk.layer_states(
                torch.arange(len(words))[None], torch.tensor([len(words)]), spellings
            )
        )
    return np.stack([layer[0, 1:-1].numpy() for layer in layers], axis=1)


def test_each_word_has_the_vectors_of_its_own_sentence(lm):
    for text, line in zip(TEXTS, embed_words(lm, TEXTS), strict=True):
        assert line.text == text
        assert line.words == text.lower().split()
        assert line.vectors.shape == (len(line.words), 3, 16) and line.vectors.dtype == np.float32
        if line.words:
            np.testing.assert_allclose(line.vectors, by_hand(lm, text), atol=1e-5)


def test_vectors_are_of_the_context_and_the_input_layer_is_not(lm):
    one, other = embed_words(lm, ["the king came", "the king went"])
    same = np.abs(one.vectors - other.vectors) < 1e-5  # (3, 3, 16)
    assert same[:2, 0].all() and not same[2, 0].all()
    assert same[:2, 1:, :8].all() and not same[:2, 1:, 8:].all((1, 2)).any()
    assert np.array_equal(one.vectors[:, 0, :8], one.vectors[:, 0, 8:])


@pytest.mark.parametrize("rows", [1, 9, 100])
def test_batches_and_what_is_held_change_nothing(lm, rows, monkeypatch):
    expected = list(embed_words(lm, TEXTS))
    monkeypatch.setattr(module, "TOGETHER", 7)
    for line, same in zip(embed_words(lm, TEXTS, rows=rows), expected, strict=True):
        assert line.words == same.words
        np.testing.assert_allclose(line.vectors, same.vectors, atol=1e-5)


def test_layers_are_chosen(lm):
    for every, some in zip(embed_words(lm, TEXTS), embed_words(lm, TEXTS, [2, 0]), strict=True):
        np.testing.assert_allclose(some.vectors, every.vectors[:, [2, 0]], atol=1e-6)
    for wrong in ([3], [-1], []):
        with pytest.raises(UserError, match=r"layers 0 \(embedding\) to 2"):
            next(embed_words(lm, TEXTS, wrong))


def test_bfloat16_is_near(lm):
    exact, rough = (
        np.concatenate([line.vectors for line in embed_words(lm, TEXTS, precision=kind)])
        for kind in ("float32", "bfloat16")
    )
    assert rough.dtype == np.float32
    assert 0 < np.linalg.norm(rough - exact) < 0.05 * np.linalg.norm(exact)


def test_batches_hold_every_text_with_words_once():
    lengths = [4, 0, 9, 1, 1, 30, 4, 0]
    plan = WordVectors.plan(SimpleNamespace(rows=18), np.array(lengths))
    assert sorted(i for batch in plan for i in batch) == [0, 2, 3, 4, 5, 6]
    for batch in plan:
        assert len(batch) == 1 or len(batch) * (max(lengths[i] for i in batch) + 2) <= 18


def test_npz(lines, tmp_path):
    assert write_words(tmp_path / "v.npz", [0, 2], 6, lines) == 5
    with np.load(tmp_path / "v.npz") as file:
        assert sorted(file.files) == ["layers", "offsets", "vectors", "words"]
        assert file["offsets"].tolist() == [0, 2, 2, 5] and file["layers"].tolist() == [0, 2]
        assert file["words"].tolist() == ["a", "b", "c", "d", "é"]
        assert file["vectors"].dtype == np.float32 and np.array_equal(
            file["vectors"], np.concatenate([line.vectors for line in lines])
        )
