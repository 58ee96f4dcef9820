"""Averaged static word vectors: whose they are, which forms of file are read, and what is said of
those that cannot be.
"""

import gzip
import lzma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmtools.base.errors import UserError
from lmtools.base.files import sha256
from lmtools.text import NORMALISERS, Normaliser
from lmtools.vectors import static
from lmtools.vectors.static import StaticVectors, spell_word

VECTORS = {
    "the": (1.0, 0.0, 2.0), "cat": (0.5, -1.0, 0.0), "it": (3.0, 0.0, 1.0), "'s": (0.0, 4.0, 0.0),
    "n't": (0.0, 0.0, -8.0),
    "do": (1.0, 1.0, 1.0), "o'clock": (9.0, 0.0, 0.0), "clock": (0.0, 9.0, 0.0),
    "t": (7.0, 7.0, 7.0), "naïve": (1e-3, 2e5, 0.25),
}  # fmt: skip
LINES = [f"{word} {' '.join(map(repr, vector))}" for word, vector in VECTORS.items()]


def written(path, lines, opener=open) -> str:
    with opener(path, "wt", encoding="utf-8", newline="") as stream:
        stream.writelines(f"{line}\n" for line in lines)
    return str(path)


@pytest.fixture
def file(tmp_path):
    return written(tmp_path / "glove.txt", LINES)


def mean(words) -> np.ndarray:
    """What the vector of these words is to be, by hand."""
    return np.array(
        [sum(VECTORS[word][i] for word in words) / max(1, len(words)) for i in range(3)],
        dtype=np.float32,
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cat", ["the", "cat"]),
        ("CAT, the cat!", ["cat", "the", "cat"]),
        ("the dog", ["the"]),
        ("It's the naïve cat", ["it", "'s", "the", "naïve", "cat"]),
        ("it’s", ["it", "'s"]),
        ("don't", ["do", "n't"]),
        ("o'clock", ["o'clock"]),
        ("isn't", ["n't"]),
        ("y'clock", ["clock"]),
        ("dog", []),
        ("", []),
    ],
)
def test_a_sentence_is_the_mean_of_the_words_that_have_vectors(file, text, words):
    encoder = StaticVectors(file)
    _, sentence = encoder.prepare(["the", text])
    assert sentence == tuple(sorted(words))
    vectors = encoder.vectors([sentence])
    assert (
        vectors.shape == (1, len(encoder.layers), encoder.width) == (1, 1, 3)
        and vectors.dtype == np.float32
    )
    np.testing.assert_allclose(vectors[0, 0], mean(words), rtol=1e-6)


@pytest.mark.parametrize(
    ("suffix", "opener"), [(".txt", open), (".txt.gz", gzip.open), (".txt.xz", lzma.open)]
)
@pytest.mark.parametrize(
    "form",
    [
        "glove",
        "word2vec",
        "trailing spaces",
        "CRLF",
        "twice",
        "spaces inside words",
        "no number of others",
    ],
)
def test_forms_of_files(tmp_path, form, suffix, opener):
    lines = {
        "glove": LINES,
        "word2vec": [f"{len(LINES)} 3", *LINES],
        "trailing spaces": [f"{len(LINES)} 3 ", *(f"{line} " for line in LINES)],
        "CRLF": [f"{line}\r" for line in LINES],
        "twice": [*LINES, "cat 8 8 8"],  # the first counts
        "spaces inside words": [
            LINES[0],
            "cat @ home 5 5 5",
            "cat 22 go 5 5 5",
            ". . . 5 5 5",
            *LINES[1:],
            "the name@domain.com 5 5 5",
        ],
        # lines of no word of the texts are not taken apart
        "no number of others": [*LINES, "unwanted 1 two 3"],
    }[form]
    encoder = StaticVectors(written(tmp_path / f"v{suffix}", lines, opener))
    vectors = encoder.vectors(encoder.prepare(["the cat", "the 3"]))
    np.testing.assert_array_equal(vectors[:, 0], [mean(["the", "cat"]), mean(["the"])])
    assert encoder.width == 3


def test_the_file_is_read_again_only_for_new_words(file, monkeypatch):
    reads = []
    read_lines = static.read_lines
    encoder = StaticVectors(file)
    monkeypatch.setattr(static, "read_lines", lambda path: reads.append(path) or read_lines(path))
    first = encoder.prepare(["the cat", "a dog"])
    assert len(reads) == 1 and set(encoder.held) == {"the", "cat"}
    assert encoder.prepare(["the dog", "a cat", ""]) == [("the",), ("cat",), ()] and len(reads) == 1
    assert encoder.prepare(["it's"]) == [("'s", "it")] and len(reads) == 2
    np.testing.assert_array_equal(encoder.vectors(first)[:, 0], [mean(["the", "cat"]), mean([])])
    assert encoder.words == 9 and encoder.missing == {"a": 2, "dog": 2}


def test_the_signature_is_of_file_and_normaliser(file, tmp_path):
    encoder = StaticVectors(file)
    assert encoder.signature["lm"] == "words" and encoder.signature["model"] == sha256(file)[:16]
    assert encoder.signature == StaticVectors(file, NORMALISERS["librispeech"]).signature
    other = StaticVectors(file, Normaliser())
    assert other.signature != encoder.signature
    assert other.prepare(["The cat, the t '"]) == [("t", "the")]
    assert StaticVectors(written(tmp_path / "other.txt", LINES[:2])).signature != encoder.signature


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], ": empty; "),
        (["", *LINES], ":1: no word with its vector; "),
        (["the"], ":1: no word with its vector; "),
        (["once upon a time"], ":1: 'upon' is not a number; "),
        (["a 1 2 3", "the 1 2"], ":2: 2 numbers, not 3 as in line 1; "),
        (["a 1 2 3", "the 1 2 3 4"], ":2: 4 numbers, not 3 as in line 1; "),
        (["3 3", "a 1 2 3", "the 1 2 3 4"], ":3: 4 numbers, not 3 as in line 1; "),
        (["a 1 2 3", "the 1 x 3"], ":2: 'x' is not a number; "),
        (["a 1 2 3", "the 1 nan 3"], ":2: 'nan' is not a number; "),
        (["a 1 2 3", "the 1 1e39 3"], ":2: '1e39' is not a number; "),
        (["3 2", "the 1 2", "a 1 2"], ": 2 words, but line 1 says 3; "),
        (["THE 1 2 3"], ": none of the 2 words of the texts, as 'the', is there; "),
    ],
)
def test_a_file_of_another_form_is_refused_with_its_line(tmp_path, lines, message):
    path = written(tmp_path / "v.txt", lines)
    with pytest.raises(UserError) as error:
        StaticVectors(path).prepare(["the cat"])
    assert str(error.value).startswith(path + message) and "\n" not in str(error.value)


def test_a_file_that_is_not_there_or_damaged(tmp_path):
    with pytest.raises(UserError, match="cannot read"):
        StaticVectors(tmp_path / "none.txt")
    (tmp_path / "v.txt.gz").write_bytes(gzip.compress(b"the 1 2\n" * 9000)[:-20])
    with pytest.raises(UserError, match="damaged archive"):
        StaticVectors(tmp_path / "v.txt.gz").prepare(["the"])


def test_texts_without_words_need_no_vectors(file):
    encoder = StaticVectors(file)
    assert encoder.prepare([]) == [] and encoder.prepare(["", "?!"]) == [(), ()]
    assert not encoder.vectors([(), ()]).any()


@given(st.text(alphabet="ant'", min_size=1, max_size=8))
def test_spellings_keep_every_letter(word):
    ways = spell_word(word)
    assert ways[0] == (word,)
    assert all(
        way and all(way) and "".join(way).replace("'", "") == word.replace("'", "")
        for way in ways
        if "'" not in way
    )
