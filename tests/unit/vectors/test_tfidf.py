"""tf-idf against its definition, spelled out here word by word."""

import gzip
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmtools.base.errors import UserError
from lmtools.text import Normaliser
from lmtools.vectors.static import Tfidf

TEXTS = ["the cat's cat", "the Dog sat on the mat", "zebra", "", "sat dog the", "The cat sat."]
TEXT = st.lists(st.sampled_from(["a", "b", "c", "dd", "e", "B."]), max_size=6).map(" ".join)


def brute(texts: list[str], counted: list[str]) -> list[dict[str, float]]:
    """Each text's weights by word, by the definition; of words between spaces."""
    weights = []
    for text in texts:
        words = text.split()
        row = {}
        for word in words:
            holders = sum(word in line.split() for line in counted)
            row[word] = words.count(word) * (math.log((1 + len(counted)) / (1 + holders)) + 1)
        length = math.sqrt(sum(value**2 for value in row.values()))
        weights.append({word: value / length for word, value in row.items()})
    return weights


def dense(rows: list[dict[str, float]]) -> np.ndarray:
    """(N, 1, words) of weights by word, words sorted."""
    words = sorted({word for row in rows for word in row})
    return np.array([[row.get(word, 0.0) for word in words] for row in rows]).reshape(
        len(rows), 1, len(words)
    )


@given(st.lists(TEXT, max_size=8))
def test_idf_of_the_distinct_texts_themselves(texts):
    encoder = Tfidf(normaliser=Normaliser())
    vectors = encoder.vectors(encoder.prepare(texts))
    expected = dense(brute(texts, list(dict.fromkeys(texts))))
    assert vectors.dtype == np.float32 and vectors.shape == expected.shape == (
        len(texts),
        1,
        encoder.width,
    )
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


@given(
    st.lists(TEXT, min_size=1, max_size=8).filter(lambda lines: any(lines)),
    st.lists(TEXT, max_size=5),
)
def test_idf_of_the_lines_of_a_file(tmp_path_factory, lines, texts):
    path = tmp_path_factory.getbasetemp() / "counted.txt.gz"
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    encoder = Tfidf(path, Normaliser())
    np.testing.assert_allclose(
        encoder.vectors(encoder.prepare(texts)), dense(brute(texts, lines)), atol=1e-6
    )


def test_case_and_punctuation_do_not_count():
    encoder = Tfidf()
    assert encoder.prepare(["The cat, it's", "it’s THE cat!"]) == [("cat", "it's", "the")] * 2
    assert encoder.layers == (0,) and encoder.cost(("a", "b")) == 2 and encoder.cost(()) == 1


def test_the_signature_is_of_all_that_vectors_depend_on(tmp_path):
    def signature(texts, lines=None, normaliser=None):
        path = None
        if lines:
            path = tmp_path / "lines.txt"
            path.write_text("\n".join(lines))
        encoder = Tfidf(path, normaliser)
        encoder.prepare(texts)
        return tuple(sorted(encoder.signature.items()))

    made = [signature(["a b"]), signature(["a b", "a"]), signature(["a b"], ["a"]),
    signature(["a b"], ["a", "b"]), signature(["a c"]),
            signature(["a b"], normaliser=Normaliser())]  # fmt: skip
    assert len(set(made)) == len(made)
    # c and d are 0 in every vector
    assert signature(["a b"], ["a b", "c"]) == signature(["a b"], ["d", "a b"])


@pytest.mark.parametrize("content", [b"", b"\n?!\n"])
def test_a_file_without_words_is_refused(tmp_path, content):
    (tmp_path / "empty.txt").write_bytes(content)
    with pytest.raises(UserError, match=r"empty.txt: no words to count; "):
        Tfidf(tmp_path / "empty.txt")
