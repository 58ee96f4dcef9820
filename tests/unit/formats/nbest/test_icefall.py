import io
import sys

import pytest

from lmtools.base.errors import UserError
from lmtools.formats.nbest import icefall
from lmtools.types import TOTAL, Hypothesis, NBest


def test_a_file_with_lists_time_stamps_and_bare_text(tmp_path):
    path = tmp_path / "recogs-test.txt"
    path.write_text(
        "zed1-0:\tref=['BLUE', \"FINCH'S\"]\nzed1-0:\thyp=['BLUE',"
        " 'FINS']\nzed1-0:\ttimestamp_ref=[[0.1,"
        " 0.2]]\nzed1-0:\ttimestamp_hyp=[0.1]\nzed1-0:\tref=['BLUE',"
        ' "FINCH\'S"]\nzed1-0:\thyp=[]\n\na:b-1:\tref=\na:b-1:\thyp=blue  finch\n'
    )
    lists = list(icefall.read(path))
    hyps = (Hypothesis("BLUE FINS", {}, {"timestamp_hyp": "[0.1]"}), Hypothesis(""))
    first = NBest("zed1-0", hyps, "BLUE FINCH'S", {"timestamp_ref": "[[0.1, 0.2]]"})
    assert lists == [first, NBest("a:b-1", (Hypothesis("blue finch"),), "")]
    assert icefall.recognises(path, "zed1-0:\tref=['BLUE']") and not icefall.recognises(
        path, "zed1 ref=['BLUE']"
    )
    icefall.write(lists, path)
    assert list(icefall.read(path)) == lists
    assert path.read_text().splitlines()[:3] == [
        "zed1-0:\tref=['BLUE', \"FINCH'S\"]",
        "zed1-0:\ttimestamp_ref=[[0.1, 0.2]]",
        "zed1-0:\thyp=['BLUE', 'FINS']",
    ]


def test_a_pipe_and_scores(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a-0:\thyp=['x']\n")))
    icefall.write(icefall.read("-"), "-")
    assert capsys.readouterr().out == "a-0:\thyp=['x']\n"
    icefall.write([NBest("a", (Hypothesis("x", {"am": 1.0, TOTAL: 2.0}),))], tmp_path / "f")
    with pytest.raises(UserError, match="'a': has the scores am, and this format holds none"):
        icefall.write([NBest("a", (Hypothesis("x", {"am": 1.0}),))], tmp_path / "f")
    assert (tmp_path / "f").read_text() == "a:\thyp=['x']\n"
