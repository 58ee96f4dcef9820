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


def test_absent_and_null_reference_are_unknown_but_an_empty_one_is_not(tmp_path):
    path = tmp_path / "n.jsonl"
    path.write_text(
        '{"utt":"a","hyps":[]}\n{"utt":"b","ref":null,"hyps":[]}\n{"utt":"c","ref":"","hyps":[]}\n'
    )
    assert [nbest.ref for nbest in list(jsonl.read(path))] == [None, None, ""]
