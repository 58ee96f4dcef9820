from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.base.errors import UserError
from lmtools.ngram import arpa, counts
from lmtools.ngram.counts import count, index
from lmtools.ngram.sentences import SYMBOLS, TokenisedText

corpora = st.lists(st.lists(st.sampled_from("abcd"), max_size=6), min_size=1, max_size=12)


def spelled(grams, vocabulary, n):
    """The words of each n-gram, by walking down its suffixes."""
    ids = arpa.spell(grams[:n], 0, len(grams[n - 1]))
    return [tuple(vocabulary[i] for i in row) for row in ids]


@settings(max_examples=60, deadline=None)
@given(corpora, st.sampled_from([1, 500, 1 << 30]), st.sampled_from([2, 4, 63]))
def test_every_ngram_with_its_count_and_suffix(corpus, memory, key):
    """However little memory there is, and however few words an integer holds."""
    text = index(corpus)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "KEY", key)
        grams = count(text, 4, memory)
    padded = [("<s>", *sentence, "</s>") for sentence in corpus]
    found = [spelled(grams, text.vocabulary, n) for n in range(1, 5)]
    for n, gram in enumerate(grams[1:], 2):
        occurrences, left = Counter(), defaultdict(set)
        for sentence in padded:
            for i in range(len(sentence) - n + 1):
                words = sentence[i : i + n]
                occurrences[words] += 1
                if i:
                    left[words].add(sentence[i - 1])
        names = found[n - 1]
        assert sorted(names) == sorted(occurrences)
        expected = [
            occurrences[name] if n == 4 or name[0] == "<s>" else len(left[name]) for name in names
        ]
        assert gram.count.read().tolist() == expected
        assert [found[n - 2][i] for i in gram.suffix.read()] == [name[1:] for name in names]
        numbers = [tuple(text.vocabulary.index(word) for word in name[::-1]) for name in names]
        assert numbers == sorted(numbers), "suffix order"


def test_unigrams_count_everything_but_the_beginning():
    text = index([["a", "b", "a"], ["b"]])
    assert text.vocabulary == [*SYMBOLS, "a", "b"]
    (words,) = count(text, 1, 1 << 20)
    assert words.count.read().tolist() == text.occurrences.tolist() == [0, 0, 2, 2, 2]


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
