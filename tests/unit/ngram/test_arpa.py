import io
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmtools.base.errors import UserError
from lmtools.ngram import arpa, arrays, parsing
from lmtools.ngram.counts import count, index
from lmtools.ngram.kneser_ney import estimate


def written(corpus, order):
    """The ARPA file of a model of `corpus`, its n-grams and its vocabulary."""
    text = index(corpus)
    grams = count(text, order, 1 << 20)
    estimate(grams, 1 << 20)
    stream = io.BytesIO()
    arpa.write(stream, text.vocabulary, grams)
    return stream.getvalue(), grams, text.vocabulary


def spelled(values, words=("w",)):
    """The lines of a unigram with these probabilities."""
    ids = np.zeros((len(values), 1), dtype=np.int64)
    logs = arpa.scale_logs(np.array([values]))
    return arpa.LineBytes(words).join(ids, logs).decode().splitlines()


def test_decimals_of_zero_and_one():
    lines = ["-99.000000\tw", "0\tw", "-10.000000\tw", "2.000000\tw", "-0.000001\tw"]
    assert spelled([0.0, 1.0, 1e-10, 100.0, 10**-1e-6]) == lines


@given(st.lists(st.text("aö", min_size=1, max_size=40), min_size=1, max_size=5, unique=True))
def test_words_of_any_length(vocabulary):
    """A line is 8 bytes at a time: none of a word's is lost, none of a neighbour's overwritten."""
    words = np.array(list(itertools.product(range(len(vocabulary)), repeat=3)))
    logs = np.random.default_rng(0).integers(-20_000_000, 3_000_000, (2, len(words)))
    logs[:, ::3] = 0
    lines = arpa.LineBytes(vocabulary).join(words, logs.astype(np.int32)).decode()
    expected = [
        "\t".join((number, " ".join(vocabulary[i] for i in row), weight))
        for row, number, weight in zip(
            words, *([shown(x) for x in log] for log in logs), strict=True
        )
    ]
    assert lines == "".join(f"{line}\n" for line in expected)


def shown(log):
    """A scaled logarithm as files have it."""
    return f"{log / 1e6:.6f}" if log else "0"


@pytest.mark.parametrize("order", [2, 3])
def test_what_is_written_reads_back(tmp_path, lines, order, monkeypatch):
    monkeypatch.setattr(arpa, "CHUNK", 37)  # so that sections take several pieces
    content, grams, vocabulary = written(
        [*map(str.split, lines), ["ein-" + "sehr" * 200 + "-langes-wört"]], order
    )
    (tmp_path / "lm.arpa").write_bytes(content)
    read = arpa.read(tmp_path / "lm.arpa")
    assert [len(section) for section in read] == [len(gram) for gram in grams]
    for n, gram in enumerate(grams, 1):
        made, weight = gram.prob.read(), gram.backoff.read()
        for row, ids in enumerate(arpa.spell(grams[:n], 0, len(gram))):
            prob, backoff = read[n - 1][tuple(vocabulary[i] for i in ids)]
            assert prob == pytest.approx(math.log10(made[row]), abs=1e-6)
            assert backoff == pytest.approx(math.log10(weight[row]) if n < order else 0, abs=1e-6)


def test_layout():
    content, _, _ = written([["a", "b"], ["a", "c"]], 2)
    text = content.decode()
    assert text.startswith("\\data\\\nngram 1=6\nngram 2=5\n\n\\1-grams:\n")
    assert text.endswith("\n\n\\end\\\n")
    rows = text.split("\\2-grams:\n")[1].split("\n\n")[0].split("\n")
    assert [row.split("\t")[1] for row in rows] == ["b </s>", "c </s>", "<s> a", "a b", "a c"]
    assert "\n0\t<s>\t" in text


def test_a_unigram_model_has_an_empty_bigram_section():
    content, _, _ = written([["a", "b"]], 1)
    assert b"ngram 2=0\n" in content
    assert b"\\2-grams:\n\n\\end\\\n" in content


@pytest.mark.parametrize("row", ["-1.0 a", "x\ta", "-1\ta\tno"])
def test_a_malformed_row_is_named(tmp_path, row):
    path = tmp_path / "lm.arpa"
    path.write_text(f"\\data\\\nngram 1=1\n\n\\1-grams:\n{row}\n\n\\end\\\n")
    with pytest.raises(UserError, match=r"lm\.arpa:5: expected log10 p"):
        arpa.read(path)


WORDS = ["a", "b", "ab", "aaaaaaaa", "aaaaaaaab", "aaaaaaaac", "œuvre", "x" * 40, "x" * 40 + "y"]
IDS = {word: i for i, word in enumerate(WORDS)}
LOGS = [
    "-1.5",
    "0",
    "-0",
    "-.25",
    "-3.",
    "-99",
    "0.00002",
    "-12.3456789",
    "-0.00012345678",
    "-1.12345678",
    "-1.123456789",
    "-10.5",
    "-0.000001",
]
NUMBERS = [*LOGS, "3.", "0.30103"]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(LOGS),
        st.lists(st.sampled_from(WORDS), min_size=3, max_size=3),
        st.none() | st.sampled_from(NUMBERS),
    ),
    min_size=1,
    max_size=12,
)


@given(ROWS)
def test_blocks_are_as_their_lines(rows):
    lines = [
        "\t".join([prob, " ".join(words), *([] if backoff is None else [backoff])])
        for prob, words, backoff in rows
    ]
    words, values = parsing.parse_section(
        "".join(f"{line}\n" for line in lines).encode(), 3, parsing.WordTable(IDS)
    )
    expected = parsing.parse_lines("f", list(enumerate(lines)), 3, IDS)
    assert np.array_equal(words, expected[0]) and np.array_equal(values, expected[1])


@pytest.mark.parametrize(
    "line",
    ["-1\ta b", "-1 a b a", "-1\ta b c", "-1\ta\tb a", "-1\ta  b", "1e-3\ta b a", "1.2.3\ta b a",
     "--1\ta b a", "-\ta b a", ".\ta b a", "\ta b a", "-1\ta b a\t", "-1\ta b a\t-1\t-1", "",
     "-1.12:4\ta b a", "-1.1/34567\ta b a", "-1.\xe91\ta b a", ":.1\ta b a",
     "-1\ta b a\0", "-0.12345678901234567\ta b a", "0.5\ta b a", "-1\ta b a\t100"],
)  # fmt: skip
def test_other_lines_are_left_to_the_slow_reader(line):
    text = f"-1\ta b a\n{line}\n-1\tb b a\n".encode()
    assert parsing.parse_section(text, 3, parsing.WordTable(IDS)) is None


def test_words_are_found_among_many():
    ids = {f"word{i}": i for i in range(3000)}
    table = parsing.WordTable(ids)
    text = " ".join([*ids, "word", "word3000"]).encode()
    lengths = np.array(list(map(len, text.split())))
    found = table.find(text, np.cumsum(lengths + 1) - lengths - 1, lengths)
    assert found.tolist() == [*range(3000), -1, -1]


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_what_the_fast_reader_leaves_is_read_all_the_same(tmp_path, end):
    lines = [
        "\ufeff\\data\\", "ngram 1=4", "ngram 2=2", "", "\\1-grams:", "-1\t<unk>", "0\t<s>\t-1e-1",
        "-1\t</s>", "-0.5\ta", "", "\\2-grams:", "-1e0\t<s> a", "-0.5\t<s> </s>", "", "\\end\\", "",
    ]  # fmt: skip
    path = tmp_path / "lm.arpa"
    path.write_bytes(end.join(lines).encode())
    model = arrays.read_arpa(path, ids := arrays.new_vocabulary())
    assert model.counts == [4, 2] and list(ids) == ["<unk>", "<s>", "</s>", "a"]
    assert sorted(model.levels[1].prob) == pytest.approx([0.1, 10**-0.5])
    path.write_bytes(end.join(lines).encode().replace(b"<s> a", b"<s> \xff"))
    with pytest.raises(UserError, match=r"lm.arpa:12: not UTF-8"):
        arrays.read_arpa(path, arrays.new_vocabulary())


def test_lines_too_long_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("LMTOOLS_MAX_LINE", "20")
    path = tmp_path / "lm.arpa"
    path.write_text("\\data\\\nngram 1=4\n" + 30 * "x")
    with pytest.raises(UserError, match=r"lm.arpa:3: a line of more than 20 bytes"):
        arrays.read_arpa(path, arrays.new_vocabulary())
