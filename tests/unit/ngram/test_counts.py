import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.errors import UserError
from lmtools.ngram.counts import count, index
from lmtools.ngram.sentences import BOS, SYMBOLS, TokenisedText

corpora = st.lists(st.lists(st.sampled_from("abcd"), max_size=6), min_size=1, max_size=12)


def spelled(grams, vocabulary, n, row):
    """The words of n-gram `row`, by walking down its suffixes."""
    words = []
    for gram in reversed(grams[:n]):
        words.append(vocabulary[gram.first[row]])
        row = gram.suffix[row]
    return tuple(words)


@settings(max_examples=60, deadline=None)
@given(corpora)
def test_every_ngram_with_its_occurrences_suffix_and_context(corpus):
    vocabulary, ids = index(corpus)
    grams = count(ids, len(vocabulary), 4)
    padded = [("<s>", *sentence, "</s>") for sentence in corpus]
    for n, gram in enumerate(grams[1:], 2):
        expected = {}
        for words in (
            sentence[i : i + n] for sentence in padded for i in range(len(sentence) - n + 1)
        ):
            expected[words] = expected.get(words, 0) + 1
        names = [spelled(grams, vocabulary, n, row) for row in range(len(gram))]
        assert dict(zip(names, gram.occurrences.tolist(), strict=True)) == expected
        shorter = [spelled(grams, vocabulary, n - 1, row) for row in range(len(grams[n - 2]))]
        assert [shorter[i] for i in gram.suffix] == [name[1:] for name in names]
        assert [shorter[i] for i in gram.context] == [name[:-1] for name in names]
        order = [tuple(vocabulary.index(word) for word in reversed(name)) for name in names]
        assert order == sorted(order), "suffix order"


def test_unigrams_count_everything_but_the_beginning():
    vocabulary, ids = index([["a", "b", "a"], ["b"]])
    assert vocabulary == [*SYMBOLS, "a", "b"]
    assert count(ids, 5, 1)[0].occurrences.tolist() == [0, 0, 2, 2, 2]


def test_an_order_longer_than_every_sentence_is_empty():
    vocabulary, ids = index([["a"]])
    assert [len(gram) for gram in count(ids, len(vocabulary), 6)] == [4, 2, 1, 0, 0, 0]


def test_ids_frame_each_sentence():
    _, ids = index([["a"], ["b", "a"]])
    assert ids.dtype == np.int32
    assert np.flatnonzero(ids == BOS).tolist() == [0, 3]


def test_sentences_skip_empty_lines_and_reserved_symbols(tmp_path):
    path = tmp_path / "text"
    path.write_text("a <s> b\n\n  \n<unk>\n</s> <UNK> c\n")
    sentences = TokenisedText([path, path], str.split)
    assert list(sentences) == [["a", "b"], ["c"]] * 2
    assert (sentences.sentences, sentences.tokens, sentences.reserved) == (4, 6, 8)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\n \n<unk>\n", ": no sentence in the text; give"),
        (b"", ": no sentence in the text; give"),
        (b"fine\na\0b\n", ":2: holds a NUL byte"),
        (b"fine\n\xff\n", ":2: not UTF-8"),
    ],
)
def test_bad_text_is_refused_with_its_place(tmp_path, content, message):
    path = tmp_path / "text"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        list(TokenisedText([path], str.split))
    assert str(caught.value).startswith(f"{path}{message}")
