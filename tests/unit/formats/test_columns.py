"""Columns of plain numbers: in list order, by utterance and rank, a file an utterance."""

import gzip

import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.formats import scores
from lmtools.formats.scores import read_column_file
from lmtools.types import Hypothesis, NBest

LISTS = [
    NBest("a", (Hypothesis("one"), Hypothesis("two"))),
    NBest("b", ()),
    NBest("c", (Hypothesis("three"),)),
]


def column(path):
    table = read_column_file(path, LISTS, "n.jsonl")
    assert table.lists is None and not table.tokens
    return {utt: values.tolist() for utt, values in table.log_prob.items()}


@pytest.mark.parametrize(
    "text",
    [
        "-1.5\n2\n  3e-1\n",
        "-1.5\r\n2\r\n0.3\r\n",
        "c 1 0.3\na 2 2\na 1 -1.5\n",
        "a\t1\t-1.5\na\t2\t2\nc\t1\t.3\n",
    ],
)
def test_numbers_of_lists(tmp_path, text):
    path = tmp_path / "x"
    path.write_text(text)
    assert column(path) == {"a": [-1.5, 2.0], "b": [], "c": [0.3]}


def test_a_directory_with_a_file_an_utterance(tmp_path):
    with gzip.open(tmp_path / "a.gz", "wt") as out:
        out.write("-1.5\n2\n")
    (tmp_path / "c.score").write_text("0.3\n")
    assert column(tmp_path) == {"a": [-1.5, 2.0], "b": [], "c": [0.3]}
    (tmp_path / "c").write_text("0.3\n")
    with pytest.raises(UserError, match="'c' is also in c"):
        column(tmp_path)
    (tmp_path / "c").unlink()
    (tmp_path / "c.score").write_text("0.3\n7\n")
    with pytest.raises(UserError, match=r"c\.score:2: 'c' in n\.jsonl has 1 hypotheses"):
        column(tmp_path)
    (tmp_path / "c.score").unlink()
    with pytest.raises(UserError, match="no file for utterance 'c'"):
        column(tmp_path)
    (tmp_path / "d").write_text("1\n")
    with pytest.raises(UserError, match=r"d: n\.jsonl has no utterance 'd'"):
        column(tmp_path)


def test_a_score_file_is_read_as_one(tmp_path):
    path = tmp_path / "x"
    values = [np.array([-1.0, -2.0]), np.zeros(0), np.array([-3.0])]
    counts = [np.array([2, 2]), np.zeros(0, int), np.array([2])]
    scores.write(scores.make_table(LISTS, values, counts, {"lm": "x"}), LISTS, path)
    table = read_column_file(path, LISTS, "n.jsonl")
    assert table.lists and table.signature == {"lm": "x"}
    assert table.tokens["a"].tolist() == [2, 2]


@pytest.mark.parametrize(
    "text, message",
    {
        "": "x: the file is empty; give",
        "1\n2\n": "x:2: the file ends after 2 numbers, and n.jsonl has 3 hypotheses (the next is 1"
        " of 'c'); give",
        "1\n2\n3\n4\n": "x:4: n.jsonl has 3 hypotheses, and no more; give",
        "1\nnan\n3\n": "x:2: the line is 'nan'; expected a finite number",
        "1\ninf\n3\n": "x:2: the line is 'inf'",
        "1\n1_0\n3\n": "x:2: the line is '1_0'",
        "1\n\n3\n": "x:2: 0 fields; expected one number",
        "1\n2 3\n3\n": "x:2: 2 fields; expected one number",
        "1 2\n": "x:1: 2 fields; a column is",
        "a 1 1\na 2\n": "x:2: 2 fields; expected `utt rank value`",
        "a 1 1\nz 1 1\n": "x:2: n.jsonl has no utterance 'z'",
        "a 0 1\n": "x:1: rank '0' is not from 1 to 2",
        "a 1 1\na 3 1\n": "x:2: rank '3' is not from 1 to 2",
        "a 1 1\na 1 1\n": "x:2: a second number for hypothesis 1 of 'a'",
        "a 1 NaN\n": "x:1: the value is 'NaN'; expected a finite number",
        "c 1 1\na 1 1\n": "x: no number for 1 hypotheses of n.jsonl, first 2 of 'a'",
        "a#1\t-1\t2\n": "x:1: no header",
        "# mine\n1\n": "x:1: no header",
    }.items(),
)
def test_refusals(tmp_path, text, message):
    (tmp_path / "x").write_text(text)
    with pytest.raises(UserError) as told:
        read_column_file(tmp_path / "x", LISTS, "n.jsonl")
    assert message in str(told.value) and ";" in str(told.value)
