import os
import pickle
import shutil
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools import UserError
from lmtools.text import NORMALISERS, Normaliser
from lmtools.text.subword import BOS, EOS, MASK, PAD, SUBWORDS, UNK, load_subword, train

LINES = [
    "the blue finch sings at dawn",
    "The finches' song, isn't it fine?",
    "a <mask> </s> <s> <unk> <pad> b",
    "",
    "blue dawn blue song twelve 12 345 naïve",
    "singing and dawning and bluer finches",
] * 4
WORDS = sorted({word for line in LINES for word in NORMALISERS["librispeech"](line).split()})
SEEN = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
ANY = st.text(st.one_of(st.sampled_from("abcdefg ▁<>/s漢字"), st.characters()), max_size=20)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("subword")
    return {
        scheme: train(scheme, LINES, 80, NORMALISERS["librispeech"], folder / scheme)
        for scheme in SUBWORDS
    }, folder


@pytest.fixture(params=SUBWORDS)
def subword(models, request):
    return models[0][request.param]


@settings(max_examples=50, deadline=None)
@given(SEEN)
def test_seen_words_come_back(models, text):
    for subword in models[0].values():
        ids = subword.encode(text)
        assert subword.decode(ids) == text
        assert subword.decode([BOS, *ids, EOS, PAD]) == text
        assert subword.unknown(text) == 0


@settings(max_examples=100, deadline=None)
@given(st.lists(ANY, max_size=4))
def test_any_text(models, texts):
    for subword in models[0].values():
        encoded = subword.encode_batch(texts)
        assert encoded == [subword.encode(text) for text in texts]
        for text, ids in zip(texts, encoded, strict=True):
            words = subword.normaliser(text).split()
            assert not {PAD, EOS, BOS, MASK} & set(ids)
            assert all(0 <= i < subword.size for i in ids)
            assert len(subword.pieces(text)) == len(ids)
            assert "".join(subword.pieces(text)).replace("▁", "") == "".join(words)
            lengths = subword.lengths(subword.encode(text))
            assert len(lengths) == len(words)
            assert sum(lengths) == len(ids)
            assert min(lengths, default=1) > 0


def test_lengths_are_those_of_words_alone(subword):
    text = " ".join(WORDS)
    alone = [len(subword.encode(word)) for word in WORDS]
    # the mark counts with the word after it
    between = [int(subword.scheme == "char" and place > 0) for place in range(len(WORDS))]
    assert subword.lengths(subword.encode(text)) == np.add(alone, between).tolist()


@pytest.mark.parametrize(
    "text", ["<mask>", "</s>", "<s>", "<pad>", "<unk>", "x<mask>y", "▁<mask>", "<mask> </s>"]
)
def test_written_specials_are_only_text(tmp_path, text):
    for scheme in SUBWORDS:
        subword = train(scheme, LINES, 80, Normaliser(), tmp_path / scheme)
        assert not {PAD, EOS, BOS, MASK} & set(subword.encode(text)), scheme


@pytest.mark.parametrize("scheme", ["bpe", "unigram"])
def test_same_as_sentencepiece_on_whole_sentences(models, scheme):
    subword = models[0][scheme]
    processor = sentencepiece.SentencePieceProcessor(
        model_file=str(models[1] / scheme / "subword.model")
    )
    for line in map(subword.normaliser, LINES):
        assert subword.encode(line) == processor.encode(line)
        assert subword.pieces(line) == processor.encode(line, out_type=str)
        assert subword.decode(subword.encode(line)) == processor.decode(processor.encode(line))


def test_words_and_characters_are_sorted_by_frequency(models):
    """An independent count: ids by falling counts, ties by the alphabet."""
    subwords, folder = models
    lines = [line for line in map(NORMALISERS["librispeech"], LINES) if line]
    counts = Counter(" ".join(lines).split())
    expected = sorted(set(counts) - {"<unk>"}, key=lambda word: (-counts[word], word))
    assert list(subwords["word"].vocabulary[5:]) == expected
    assert subwords["word"].counts.tolist() == [counts[word] for word in expected]
    letters = Counter("".join(lines))
    rows = [line.split("\t") for line in (folder / "char/vocab.txt").read_text().splitlines()]
    assert rows[0] == ["▁", str(letters[" "])]
    assert rows[1:] == [
        [c, str(n)]
        for c, n in sorted(letters.items(), key=lambda pair: (-pair[1], pair[0]))
        if c != " "
    ]


def test_min_count_and_size_bound_the_list(tmp_path):
    text = ["a a a b b c"]
    assert train("word", text, None, Normaliser(), tmp_path / "all").vocabulary[5:] == (
        "a",
        "b",
        "c",
    )
    assert train("word", text, None, Normaliser(), tmp_path / "often", min_count=2).vocabulary[
        5:
    ] == ("a", "b")
    small = train("word", text, 6, Normaliser(), tmp_path / "small")
    assert small.vocabulary[5:] == ("a",)
    assert small.encode("a b c") == [5, UNK, UNK]
    # the mark is there though unseen
    assert train("char", ["a", "b"], None, Normaliser(), tmp_path / "char").encode("a b") == [
        6,
        5,
        7,
    ]


def test_bpe_merges_the_most_frequent_pair_first(tmp_path):
    subword = train("bpe", ["abab abab cd"] * 3, 12, Normaliser(), tmp_path / "m")
    assert subword.vocabulary[5] == "ab"


def test_loaded_copied_pickled_and_in_another_process(models, tmp_path, subword):
    folder = models[1] / subword.scheme
    shutil.copytree(folder, tmp_path / "copy")
    subword.save_to(tmp_path / "saved")
    twins = [
        load_subword(folder),
        load_subword(tmp_path / "copy"),
        load_subword(tmp_path / "saved"),
        pickle.loads(pickle.dumps(subword)),
    ]
    for twin in twins:
        assert twin.hash == subword.hash
        assert twin.encode_batch(LINES) == subword.encode_batch(LINES)
    code = (
        "import sys; from lmtools.text.subword import load_subword;"
        " print(load_subword(sys.argv[1]).hash)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    other = subprocess.check_output(
        [sys.executable, "-c", code, tmp_path / "copy"], env=environment, text=True
    )
    assert other.strip() == subword.hash


def test_learning_is_deterministic_and_hash_covers_all(tmp_path):
    for scheme in SUBWORDS:
        first = train(scheme, LINES, 80, Normaliser(), tmp_path / "1")
        assert train(scheme, iter(LINES), 80, Normaliser(), tmp_path / "2").hash == first.hash
        assert (
            train(scheme, LINES, 80, Normaliser(apostrophe="straight"), tmp_path / "3").hash
            != first.hash
        )
        assert (
            train(scheme, [*LINES, "zebra zz"], 80, Normaliser(), tmp_path / "4").hash != first.hash
        )


def test_an_older_model_is_replaced_anything_else_kept(tmp_path):
    out = tmp_path / "m"
    train("word", ["a b"], None, Normaliser(), out)
    train("char", ["a b"], None, Normaliser(), out)
    assert sorted(path.name for path in out.iterdir()) == [
        "normaliser.yaml",
        "subword.yaml",
        "vocab.txt",
    ]
    assert load_subword(out).scheme == "char"
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter.tex").write_text("years of work")
    with pytest.raises(UserError, match=r"exists and holds no subword\.yaml; give another"):
        train("word", ["a b"], None, Normaliser(), other)
    assert (other / "chapter.tex").read_text() == "years of work"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "thesis"]


def test_long_words_neither_break_learning_nor_encoding(tmp_path):
    wide = "ab" * 50_000
    for scheme in SUBWORDS:
        subword = train(scheme, [f"a b {wide} ab", "ab ab"], 20, Normaliser(), tmp_path / scheme)
        assert sum(subword.lengths(subword.encode(f"a {wide}"))) == len(subword.encode(f"a {wide}"))


@pytest.mark.parametrize(
    ("scheme", "lines", "size", "options", "message"),
    [
        ("bpe", LINES, 10, {}, r"cannot hold the text's characters; give --vocab-size \d+ or more"),
        (
            "unigram",
            LINES,
            10,
            {},
            r"cannot hold the text's characters; give --vocab-size \d+ or more",
        ),
        ("bpe", LINES, None, {}, "give --vocab-size"),
        ("bpe", LINES, 80, {"min_count": 2}, "--min-count is for word and char"),
        ("word", LINES, 5, {}, "no room beside its 5 specials"),
        ("bpe", ["", " "], 80, {}, "holds no sentence"),
        ("word", ["", " "], 80, {}, "holds nothing that occurs 1 times"),
        ("char", [], None, {}, "holds nothing that occurs 1 times"),
        ("word", ["a b"], None, {"min_count": 2}, "lower --min-count"),
    ],
)
def test_refusals(tmp_path, scheme, lines, size, options, message):
    with pytest.raises(UserError, match=message):
        train(scheme, lines, size, Normaliser(), tmp_path / "m", **options)
    assert not list(tmp_path.iterdir())


def test_the_size_named_in_the_refusal_is_enough(tmp_path):
    for scheme in ("bpe", "unigram"):
        with pytest.raises(UserError) as refusal:
            train(scheme, LINES, 10, Normaliser(), tmp_path / "m")
        needed = int(str(refusal.value).split("--vocab-size ")[1].split()[0])
        train(scheme, LINES, needed, Normaliser(), tmp_path / "m")


def damage(path, how):
    path.write_bytes(how(path.read_bytes()))


@pytest.mark.parametrize(
    ("scheme", "file", "how", "message"),
    [
        (
            "bpe",
            "subword.model",
            lambda content: content[: len(content) // 2],
            "damaged subword model",
        ),
        ("bpe", "subword.model", lambda content: b"", "damaged subword model"),
        ("word", "vocab.txt", lambda content: content + b"no count\n", "damaged subword model"),
        ("word", "vocab.txt", lambda content: content[: content.index(b"\n") + 1], "was changed"),
        (
            "char",
            "normaliser.yaml",
            lambda content: content.replace(b"case: lower", b"case: upper"),
            "was changed",
        ),
        (
            "char",
            "subword.yaml",
            lambda content: b"scheme: syllable\n",
            "scheme is 'syllable'; expected one of bpe",
        ),
    ],
)
def test_damage_is_found(models, tmp_path, scheme, file, how, message):
    shutil.copytree(models[1] / scheme, tmp_path / "m")
    damage(tmp_path / "m" / file, how)
    with pytest.raises(UserError, match=message):
        load_subword(tmp_path / "m")


def test_no_model(tmp_path):
    with pytest.raises(UserError, match=r"subword\.yaml: cannot read"):
        load_subword(tmp_path)


@pytest.mark.parametrize("scheme", ["word", "char", "bpe"])
def test_a_normaliser_that_reads_whole_texts(scheme, tmp_path):
    """Words are counted, and texts encoded, as they stand in the normalised text."""
    lines = ["It's (so) twenty one", "one oh one [Music]", "twenty five mr"] * 9
    whole = NORMALISERS["whisper-english"]
    kind = train(scheme, lines, None if scheme != "bpe" else 40, whole, tmp_path / "lines")
    (tmp_path / "text").write_text("\n".join(lines))
    if scheme != "bpe":
        read = type(kind).learn_files([tmp_path / "text"], whole, nj=2)
        assert (read.vocabulary, read.counts.tolist()) == (kind.vocabulary, kind.counts.tolist())
    found = load_subword(tmp_path / "lines")
    assert found.decode(found.encode("It is, twenty-one!")) == "it is 21"
    assert UNK not in found.encode("(so) it's one oh one")
