"""Blocks of ARPA lines against the same lines read one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmtools.base.errors import UserError
from lmtools.ngram import arrays, parsing

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
