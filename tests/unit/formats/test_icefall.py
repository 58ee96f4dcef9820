import io
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.errors import UserError
from lmtools.formats import icefall
from lmtools.types import TOTAL, Hypothesis, NBest

ids = st.text(
    st.characters(exclude_categories=["Cs", "Z", "Cc"], exclude_characters="\ufeff"),
    min_size=1,
    max_size=6,
)
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff"), max_size=6)
texts = st.lists(words, max_size=4).map(lambda row: " ".join(" ".join(row).split()))
stamps = st.fixed_dictionaries({}, optional={"timestamp_hyp": st.just("[0.1, 0.2]")})


@st.composite
def nbest_lists(draw):
    lists = []
    for utt in draw(st.lists(ids, unique=True, max_size=3)):
        hyps = draw(
            st.lists(st.builds(Hypothesis, texts, st.just({}), stamps), max_size=3).map(tuple)
        )
        lists.append(NBest(utt, hyps, draw((st.none() | texts) if hyps else texts)))
    return lists


@settings(max_examples=35, deadline=None)
@given(nbest_lists())
def test_round_trip(tmp_path_factory, nbests):
    path = tmp_path_factory.mktemp("i") / "recogs.txt"
    icefall.write(nbests, path)
    assert list(icefall.read(path)) == nbests


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


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("b-0 ref=['x']", "expected `ID:<TAB>ref"),
        ("b-0:\tscore=1", "expected `ID:<TAB>ref"),
        (":\tref=[]", "utterance id '' is empty"),
        ("b 0:\tref=[]", "white space"),
        ("b-0:\thyp=['x'", "is not a list of words"),
        ("b-0:\thyp=['x', 3]", "is not a list of words"),
        ("b-0:\thyp=[['x'], ['y']]", "is not a list of words"),
        ("b-0:\thyp=[open('x')]", "is not a list of words"),
        ("b-0:\thyp=['\\ud800']", "surrogate"),
        ("b-0:\thyp=" + "[" * 5000, "is not a list of words"),
        ("b-0:\tref=['x']\nb-0:\tref=['y']", "two different references"),
        ("b-0:\tref=[]\na-0:\tref=[]", "'a-0' occurs a second time"),
    ],
)
def test_refuses(tmp_path, line, cause):
    path = tmp_path / "recogs.txt"
    path.write_text("a-0:\tref=['x']\n" + line + "\n")
    with pytest.raises(UserError) as caught:
        list(icefall.read(path))
    message = str(caught.value)
    assert (
        message.startswith(f"{path}:{2 + line.count(chr(10))}: ")
        and cause in message
        and "; " in message
        and "\n" not in message
    )
