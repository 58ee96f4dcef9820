import gzip
import json

import pytest

from lmtools.base.errors import UserError
from lmtools.formats import jsonl
from lmtools.types import Hypothesis, NBest


def test_reads_the_documented_line(tmp_path):
    path = tmp_path / "n.jsonl"
    path.write_text(
        '\ufeff{"utt": "a1", "ref": "blue finch", "hyps": [{"text": "blue fins", "scores": {"am":'
        " -12}}]}\r\n\n"
    )
    assert list(jsonl.read(path)) == [
        NBest("a1", (Hypothesis("blue fins", {"am": -12.0}),), "blue finch")
    ]


def test_written_forms(tmp_path):
    path = tmp_path / "n.jsonl"
    nbest = NBest(
        "a", (Hypothesis("b c", {"am": -1.0}, {"x": "y"}, "B, c."), Hypothesis("", {"am": -2.0}))
    )
    jsonl.write([nbest], path)
    assert list(jsonl.read(path)) == [nbest]
    assert json.loads(path.read_text())["hyps"][0]["written"] == "B, c."
    path.write_text('{"utt": "a", "hyps": [{"text": "b", "written": 1}]}\n')
    with pytest.raises(UserError, match=r":1: hypothesis 1: 'written' is 1; expected a text"):
        list(jsonl.read(path))


def test_absent_and_null_reference_are_unknown_but_an_empty_one_is_not(tmp_path):
    path = tmp_path / "n.jsonl"
    path.write_text(
        '{"utt":"a","hyps":[]}\n{"utt":"b","ref":null,"hyps":[]}\n{"utt":"c","ref":"","hyps":[]}\n'
    )
    assert [nbest.ref for nbest in list(jsonl.read(path))] == [None, None, ""]


def test_refuses_a_damaged_archive(tmp_path):
    path = tmp_path / "n.jsonl.gz"
    whole = gzip.compress(
        b"\n".join(json.dumps({"utt": str(i), "hyps": []}).encode() for i in range(5000))
    )
    for content in (whole[:-20], whole[:60] + b"\xff" * 40 + whole[100:], b"no gzip"):
        path.write_bytes(content)
        with pytest.raises(UserError, match="damaged archive"):
            list(jsonl.read(path))
