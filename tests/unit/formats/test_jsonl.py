import gzip
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.errors import UserError
from lmtools.formats import jsonl
from lmtools.types import Hypothesis, NBest

ids = st.text(
    st.characters(exclude_categories=["Cs", "Z", "Cc"], exclude_characters="\ufeff"),
    min_size=1,
    max_size=6,
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
floats = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def nbest_lists(draw):
    names = draw(st.sets(ids.filter(lambda name: "=" not in name), max_size=3))
    hyps = st.builds(Hypothesis, texts, st.fixed_dictionaries(dict.fromkeys(names, floats)))
    utts = draw(st.lists(ids, unique=True, max_size=4))
    return [
        NBest(utt, tuple(draw(st.lists(hyps, max_size=4))), draw(st.none() | texts)) for utt in utts
    ]


@settings(max_examples=100, deadline=None)
@given(nbest_lists(), st.sampled_from(["n.jsonl", "n.jsonl.gz", "n.jsonl.xz"]))
def test_round_trip(tmp_path_factory, nbests, name):
    path = tmp_path_factory.mktemp("jsonl") / name
    jsonl.write(nbests, path)
    assert list(jsonl.read(path)) == nbests


def test_reads_the_documented_line(tmp_path):
    path = tmp_path / "n.jsonl"
    path.write_text(
        '\ufeff{"utt": "a1", "ref": "blue finch", "hyps": [{"text": "blue fins", "scores": {"am":'
        " -12}}]}\r\n\n"
    )
    assert list(jsonl.read(path)) == [
        NBest("a1", (Hypothesis("blue fins", {"am": -12.0}),), "blue finch")
    ]


def test_absent_and_null_reference_are_unknown_but_an_empty_one_is_not(tmp_path):
    path = tmp_path / "n.jsonl"
    path.write_text(
        '{"utt":"a","hyps":[]}\n{"utt":"b","ref":null,"hyps":[]}\n{"utt":"c","ref":"","hyps":[]}\n'
    )
    assert [nbest.ref for nbest in list(jsonl.read(path))] == [None, None, ""]


GOOD = '{"utt": "a", "hyps": [{"text": "x", "scores": {"am": -1}}]}'
BAD = {
    "blue finch": "not JSON",
    '{"utt": "b", "hyps": [': "not JSON",
    "[" * 100_000: "n",  # too deep for one parser, unclosed for another
    "17": "expected an object",
    '{"hyps": []}': "'utt' is missing",
    '{"utt": "b"}': "'hyps' is missing",
    '{"utt": "b", "hyps": [{}]}': "'text' is missing",
    '{"utt": 7, "hyps": []}': "'utt' is 7",
    '{"utt": "b", "ref": ["x"], "hyps": []}': "'ref' is",
    '{"utt": "b", "hyps": {"text": "x"}}': "'hyps' is",
    '{"utt": "b", "hyps": ["x"]}': "hypothesis 1: it is",
    '{"utt": "b", "hyps": [{"text": null}]}': "'text' is null",
    '{"utt": "b", "hyps": [{"text": "x", "scores": [1]}]}': "'scores' is",
    '{"utt": "b", "hyps": [{"text": "x", "scores": {"am": "1"}}]}': "score 'am' is",
    '{"utt": "b", "hyps": [{"text": "x", "scores": {"am": true}}]}': "score 'am' is true",
    '{"utt": "b", "hyps": [{"text": "x", "scores": {"am": NaN}}]}': "NaN",
    '{"utt": "b", "hyps": [{"text": "x", "scores": {"am": -Infinity}}]}': "Infinity",
    '{"utt": "b", "hyps": [{"text": "x", "scores": {"am": 1e999}}]}': "finite",
    '{"utt": "b", "hyps": [{"text": "x", "scores": {"am": 1%s}}]}' % ("0" * 400): "finite",
    '{"utt": "b", "hyps": [{"text": "x", "scores": {"am": 1%s}}]}' % ("0" * 9000): "",
    '{"utt": "b", "hyps": [{"text": "x", "scores": {"a m": 1}}]}': "score name",
    '{"utt": "b", "hyps": [{"text": "x", "scores": {"a=m": 1}}]}': "score name",
    '{"utt": "b", "hyps": [{"text": "x", "score": -1}]}': "unknown key",
    '{"utt": "b", "id": 1, "hyps": []}': "unknown key",
    '{"utt": "b", "utt": "c", "hyps": []}': "twice",
    '{"utt": "b c", "hyps": []}': "white space",
    '{"utt": "b\\u3000c", "hyps": []}': "white space",
    '{"utt": "", "hyps": []}': "empty",
    '{"utt": "b", "hyps": [{"text": "\\ud800"}]}': "surrogate",
    '{"utt": "a", "hyps": []}': "second time",
    '{"utt": "b", "hyps": [{"text": "x"}]}': "hypothesis 1 has scores (none), earlier ones am",
    '{"utt": "b", "hyps": [{"text": "x", "scores": {"am": 1}}, {"text": "x", "scores": {"lm": 1}}]}': (  # noqa: E501
        "hypothesis 2"
    ),
}


@pytest.mark.parametrize("line", BAD, ids=lambda line: line[:70])
def test_refuses_with_file_line_and_cause(tmp_path, line):
    path = tmp_path / "n.jsonl"
    path.write_text(GOOD + "\n\n" + line + "\n")
    with pytest.raises(UserError) as caught:
        list(jsonl.read(path))
    message = str(caught.value)
    assert message.startswith(f"{path}:3: ")
    assert BAD[line] in message
    assert "\n" not in message and "; " in message


def test_refuses_a_damaged_archive(tmp_path):
    path = tmp_path / "n.jsonl.gz"
    whole = gzip.compress(
        b"\n".join(json.dumps({"utt": str(i), "hyps": []}).encode() for i in range(5000))
    )
    for content in (whole[:-20], whole[:60] + b"\xff" * 40 + whole[100:], b"no gzip"):
        path.write_bytes(content)
        with pytest.raises(UserError, match="damaged archive"):
            list(jsonl.read(path))


@pytest.mark.parametrize(
    "nbest",
    [
        NBest("a b", ()),
        NBest("", ()),
        NBest("b", (Hypothesis("x", {"am": math.nan}),)),
        NBest("b", (Hypothesis("x", {"am": math.inf}),)),
        NBest("b", (Hypothesis("x", {"a m": 1.0}),)),
        NBest("b", (Hypothesis("x", {"am": 1.0}), Hypothesis("y"))),
        NBest("b", (Hypothesis("\ud800"),)),
        NBest("b", (), "\udfff"),
        NBest("a", ()),
    ],
)
def test_a_refused_list_leaves_the_old_file(tmp_path, nbest):
    path = tmp_path / "n.jsonl"
    path.write_text("old")
    with pytest.raises(UserError):
        jsonl.write([NBest("a", ()), nbest], path)
    assert path.read_text() == "old"
    assert [child.name for child in tmp_path.iterdir()] == ["n.jsonl"]
