"""Words spelled by pieces: segmentation, what is predicted, the directory, and what does not fit
together.
"""

import pickle

import numpy as np
import pytest
from toys import sentences

from lmtools import UserError
from lmtools.text import NORMALISERS, Normaliser
from lmtools.text.corpus import binarise
from lmtools.text.subword import SPECIALS, UNK, load_subword, train
from lmtools.text.subword.spelled import Spelled

LINES = [*sentences(200, 1), "une ville étrange", "a queen"]
SCHEMES = {"bpe": 40, "unigram": 40, "char": None}


@pytest.fixture(scope="module", params=SCHEMES)
def spelled(request, tmp_path_factory):
    home = tmp_path_factory.mktemp(request.param)
    train("word", LINES, None, Normaliser(), home / "words", min_count=2)
    return train(
        request.param,
        LINES,
        SCHEMES[request.param],
        Normaliser(),
        home / "spelled",
        words=home / "words",
    )


def test_words_of_any_spelling_come_back(spelled):
    text = "the queens went étrangement to a ville"
    ids = spelled.encode(text)
    split = spelled.words.split(ids)
    assert len(split) == len(text.split()) and [i for word in split for i in word] == ids
    assert spelled.decode(ids) == text
    assert spelled.lengths(ids) == list(map(len, split)) == spelled.lengths(spelled.encode(text))
    assert spelled.pieces(text) == [spelled.vocabulary[i] for i in ids]


def test_a_word_is_spelled_alike_wherever_it_stands(spelled):
    alone, first, later = (
        spelled.words.split(spelled.encode(text)) for text in ("queen", "queen the", "the queen")
    )
    assert alone[0] == first[0] == later[1]
    assert spelled.encode("") == [] and spelled.words.split([]) == []


def test_targets_are_those_of_the_list(spelled):
    words = spelled.words.words
    for text in ("the", "queen", "étrange", "unseen", "<unk>", "</s>"):
        spelling = tuple(spelled.encode(text))
        assert (
            spelled.words.id_of(spelling) == words.encode(text)[0] == spelled.words.id_of(spelling)
        )
    assert spelled.words.id_of(tuple(spelled.encode("the"))) > UNK
    assert spelled.words.id_of((*spelled.encode("the"), UNK)) == UNK


def test_counts_are_those_of_the_text(spelled):
    words = [word for line in LINES for word in line.split()]
    counts = np.bincount(spelled.words.words.encode(" ".join(words)), minlength=spelled.words.size)
    assert spelled.words.counts.tolist() == counts.tolist()
    assert counts[UNK] == 3
    assert counts[: len(SPECIALS)].sum() == 3


def test_directory_and_corpus_hold_all_of_it(spelled, tmp_path):
    spelled.save_to(tmp_path / "again")
    corpus = binarise([write(tmp_path / "text", LINES)], spelled, tmp_path / "text.bin")
    for other in (
        load_subword(tmp_path / "again"),
        corpus.subword,
        pickle.loads(pickle.dumps(spelled)),
    ):
        assert isinstance(other, Spelled)
        assert other.hash == spelled.hash
        assert other.words.size == spelled.words.size
        assert other.words.counts.tolist() == spelled.words.counts.tolist()
        assert other.encode(LINES[-2]) == spelled.encode(LINES[-2])
    assert corpus[0].tolist() == spelled.encode(LINES[0])


def test_what_does_not_fit_is_refused(spelled, tmp_path):
    train("word", LINES, None, NORMALISERS["librispeech"], tmp_path / "words")
    with pytest.raises(UserError, match="normalised in another way"):
        train("char", LINES, None, Normaliser(), tmp_path / "out", words=tmp_path / "words")
    spelled.save_to(tmp_path / "spelled")
    with pytest.raises(
        UserError, match=r"--words takes a directory that lmtools subword --type word made"
    ):
        train("char", LINES, None, Normaliser(), tmp_path / "out", words=tmp_path / "spelled")
    train("word", LINES, None, Normaliser(), tmp_path / "plain")
    with pytest.raises(UserError, match="not by word"):
        train("word", LINES, None, Normaliser(), tmp_path / "out", words=tmp_path / "plain")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "damage", [b"", b"{}\n", b'{"pieces": "word", "bytes": 1, "unknown": 0}\nx']
)
def test_damage_is_named(spelled, tmp_path, damage):
    spelled.save_to(tmp_path / "spelled")
    (tmp_path / "spelled" / Spelled.file).write_bytes(damage)
    with pytest.raises(UserError, match="spelled: damaged subword model"):
        load_subword(tmp_path / "spelled")


def write(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return path
