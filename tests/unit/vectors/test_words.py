"""Word vectors of models that read pieces."""

from dataclasses import replace
from shlex import split

import numpy as np
import pytest
import torch
from scoring import CPU, make_scorer
from toys import sentences, settings
from unit.score import test_huggingface
from unit.vectors.helpers import embed_words

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.models.lm import LanguageModel
from lmtools.ngram import build
from lmtools.score.neural import NeuralScorer
from lmtools.text import NORMALISERS, Normaliser
from lmtools.text.subword import train as learn
from lmtools.vectors.encoders import load_encoder
from lmtools.vectors.words import WordVectors, load_word_vectors

bert = test_huggingface.bert
TEXTS = ["The king went", "", "a queen went to the king", "went", "zebra the zebra"]


@pytest.fixture(scope="module")
def subwords(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pieces")
    text = [*sentences(200, 1), "zebra"]
    sizes = {"bpe": 60, "unigram": 60, "char": None, "word": 40}
    return {
        kind: learn(kind, text, size, NORMALISERS["librispeech"], folder / kind)
        for kind, size in sizes.items()
    }


def made(model, subword, layers=None, rows=None, longest=64) -> WordVectors:
    torch.manual_seed(0)
    arch = settings(model).arch
    some = settings(model, arch=arch | {"positions": longest} if "positions" in arch else arch)
    lm = LanguageModel(some, subword.size)
    scorer = make_scorer(NeuralScorer, lm, subword, "0" * 16)
    return WordVectors(scorer, layers, replace(CPU, rows=rows))


@pytest.mark.parametrize("scheme", ["bpe", "unigram", "char", "word"])
@pytest.mark.parametrize("model", ["causal", "tta", "masked", "lstm"])
def test_a_word_is_the_mean_of_its_pieces(subwords, model, scheme):
    """By the pieces as they stand in the text, one text at a time."""
    subword = subwords[scheme]
    embed = made(model, subword)
    found = list(embed(TEXTS))
    assert [line.words for line in found] == [text.lower().split() for text in TEXTS]
    for text, line in zip(TEXTS, found, strict=True):
        assert line.text == text and line.vectors.shape[1:] == (len(embed.layers), embed.width)
        if not text:
            continue
        ids = subword.encode(text)
        examples = embed.model.lm.objective.scoring([ids])
        with torch.inference_mode():
            states = list(embed.model.lm.trunk.layer_states(*examples.read))
        word = np.cumsum([subword.begins[i] for i in ids])
        word -= word[0] if scheme != "char" else 0
        for layer, state in enumerate(states):
            own = state[0, 1 : 1 + len(ids)].numpy()
            for number in range(len(line.words)):
                mean = own[word == number].mean(0)
                np.testing.assert_allclose(
                    line.vectors[number, layer, : len(mean)], mean, rtol=1e-4, atol=1e-5
                )
                assert not line.vectors[number, layer, len(mean) :].any()


def test_long_texts_are_read_in_windows(subwords):
    """Each piece in one window; the beginning as in the window by itself."""
    embed = made("causal", subwords["bpe"], longest=12)
    text = " ".join(sentences(12, 5))
    (line,) = embed([text])
    assert len(line.words) == len(text.split()) and len(subwords["bpe"].encode(text)) > 40
    (first,) = embed([" ".join(text.split()[:2])])
    np.testing.assert_allclose(line.vectors[:2], first.vectors, rtol=1e-4, atol=1e-5)


def test_the_verb_and_the_library(trained, tmp_path, capsys):
    (tmp_path / "t").write_text("the king\n\na queen went\n")
    command = ["embed", "--lm", str(trained["tta"]), "--text", str(tmp_path / "t"), "--pool"]
    assert main([*command, *split(f"words --out {tmp_path}/v.npz --device cpu --cache none")]) == 0
    assert "5 words of 3 lines" in capsys.readouterr().err
    npz = np.load(tmp_path / "v.npz")
    expected = list(embed_words(trained["tta"], ["the king", "", "a queen went"]))
    np.testing.assert_array_equal(npz["vectors"], np.concatenate([e.vectors for e in expected]))
    assert npz["words"].tolist() == ["the", "king", "a", "queen", "went"]
    only = load_word_vectors(trained["tta"], [1], CPU)
    np.testing.assert_allclose(
        next(only(["the king"])).vectors[:, 0], expected[0].vectors[:, 1], rtol=1e-4, atol=1e-5
    )


def test_word_vectors_of_a_hugging_face_model(bert):
    """The mean of transformers' own states at a word's pieces."""
    directory, model, tokenizer = bert
    texts = ["the queens came to the city", "", "king"]
    for text, line in zip(texts, embed_words(f"hf:{directory}", texts), strict=True):
        assert line.words == text.split() and line.vectors.shape == (len(line.words), 4, 16)
        read = tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            hidden = model.base_model(**read, output_hidden_states=True).hidden_states
        for layer, states in enumerate(hidden):
            for number in range(len(line.words)):
                places = [i for i, word in enumerate(read.word_ids()) if word == number]
                expected = states[0, places].mean(0)
                np.testing.assert_allclose(line.vectors[number, layer], expected, atol=1e-4)


def test_an_ngram_has_no_vectors(tmp_path):
    (tmp_path / "text").write_text("\n".join(sentences(200, 5)) + "\n")
    build([tmp_path / "text"], 3, tmp_path / "lm", Normaliser(), kenlm="none")
    with pytest.raises(UserError, match="has no states"):
        next(embed_words(tmp_path / "lm", ["the king"]))
    with pytest.raises(UserError, match="give the directory of a neural model, hf:DIR"):
        load_encoder(str(tmp_path / "lm"))
