"""Contextual word vectors: whose they are, in which order, and the files that hold them."""

import itertools
import json
import random
from functools import partial
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import torch
from spelled import random_elmo, saved
from toys import sentences
from unit.vectors.helpers import embed_words

from lmtools.base.errors import UserError
from lmtools.models.checkpoint import load_model
from lmtools.models.objectives import END
from lmtools.text.subword import BOS, EOS
from lmtools.vectors import words as module
from lmtools.vectors.files import VECTOR_FILES, open_vectors
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


def contents(lines) -> list[tuple]:
    """All that lines hold, to the bit."""
    return [(line.text, line.words, line.vectors.shape, line.vectors.tobytes()) for line in lines]


def test_a_second_run_computes_nothing(lm, tmp_path, monkeypatch):
    """A text that repeats sentences, in several parts and batches."""
    monkeypatch.setattr(module, "TOGETHER", 7)
    run = partial(embed_words, lm, TEXTS, rows=30)
    expected = contents(run())
    assert contents(run(cache=tmp_path)) == expected
    monkeypatch.setattr(WordVectors, "states", lambda *_: pytest.fail("computed again"))
    assert contents(run(cache=tmp_path)) == expected


def test_the_cache_mixes_nothing_up(lm, tmp_path):
    """Layers, batches and other texts with the same sentences: all as without it."""
    for texts in (TEXTS, TEXTS[3:], TEXTS[::-1], TEXTS):
        for layers in (None, [1], [2], [0, 2], [2, 0]):
            for rows in (9, 100):
                run = partial(embed_words, lm, texts, layers, rows=rows)
                assert contents(run(cache=tmp_path)) == contents(run())


def test_another_model_has_its_own_vectors(lm, tmp_path):
    """One that differs in a weight alone."""
    model, vocabulary = load_model(lm)
    with torch.no_grad():
        model.trunk.lstms[0].bias += 0.1
    other = saved(model, vocabulary, tmp_path / "lm")
    for model in (lm, other, lm):
        run = partial(embed_words, model, TEXTS)
        assert contents(run(cache=tmp_path / "c")) == contents(run())


def test_a_damaged_cache_changes_no_vector(lm, tmp_path, capsys):
    rng = random.Random(1)
    run = partial(embed_words, lm, TEXTS, rows=30)
    expected = contents(run())
    for number in range(20):
        list(run(cache=tmp_path))
        for path in tmp_path.rglob("*.segment"):
            content = bytearray(path.read_bytes())
            for _ in range(rng.choice((1, 100))):
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            path.write_bytes(content[: rng.choice((len(content), rng.randrange(len(content))))])
        capsys.readouterr()
        assert contents(run(cache=tmp_path)) == expected, number
        assert "computed again" in capsys.readouterr().err


def test_what_was_computed_is_kept_where_nobody_asks_for_more(lm, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TOGETHER", 2)
    endless = (f"the king {'and ' * n}" for n in itertools.count())
    vectors = embed_words(lm, endless, cache=tmp_path)
    for _ in range(3):
        next(vectors)
    vectors.close()
    monkeypatch.setattr(WordVectors, "states", lambda *_: pytest.fail("computed again"))
    texts = [f"the king {'and ' * n}" for n in range(4)]
    assert len(list(embed_words(lm, texts, cache=tmp_path))) == 4


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
    with open_vectors(tmp_path / "v.npz", [0, 2], 6) as add:
        for line in lines:
            add(line)
    with np.load(tmp_path / "v.npz") as file:
        assert sorted(file.files) == ["layers", "offsets", "vectors", "words"]
        assert file["offsets"].tolist() == [0, 2, 2, 5] and file["layers"].tolist() == [0, 2]
        assert file["words"].tolist() == ["a", "b", "c", "d", "é"]
        assert file["vectors"].dtype == np.float32 and np.array_equal(
            file["vectors"], np.concatenate([line.vectors for line in lines])
        )


@pytest.mark.parametrize("name", ["v.h5", "v.hdf5"])
def test_hdf5_is_as_elmos_tools_have_it(lines, tmp_path, name):
    with open_vectors(tmp_path / name, [0, 2], 6) as add:
        for line in lines:
            add(line)
    with h5py.File(tmp_path / name) as file:
        assert sorted(file) == ["0", "1", "2", "sentence_to_index"]
        for number, line in enumerate(lines):
            assert (
                file[str(number)].shape == (2, len(line.words), 6)
                and file[str(number)].dtype == np.float32
            )
            assert np.array_equal(file[str(number)][:].transpose(1, 0, 2), line.vectors)
        index = file["sentence_to_index"]
        assert index.shape == (1,) and json.loads(index[0]) == {"a b": "0", "": "1", "c d é": "2"}
        assert file.attrs["layers"].tolist() == [0, 2]


@pytest.mark.parametrize("suffix", VECTOR_FILES)
def test_a_file_is_whole_or_the_old_one(lines, tmp_path, suffix):
    path = tmp_path / f"v{suffix}"
    path.write_text("old")
    with pytest.raises(RuntimeError), open_vectors(path, [0, 2], 6) as add:
        add(lines[0])
        raise RuntimeError
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    with open_vectors(path, [0, 2], 6):
        pass  # a text without a line
    assert path.read_bytes() != b"old"


def test_other_kinds_of_file_are_refused(tmp_path, monkeypatch):
    with pytest.raises(UserError, match=r"ends in one of \.npz, \.h5, \.hdf5"):
        open_vectors(tmp_path / "v.txt", [0], 6)
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(
        UserError, match=r"needs the package h5py; pip install -e .*\[hdf5\]'?, or write \.npz"
    ):
        open_vectors(tmp_path / "v.h5", [0], 6)
