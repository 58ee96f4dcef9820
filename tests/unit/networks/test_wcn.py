import math

import pytest
from lattices import sentences

from lmtools.base.errors import UserError
from lmtools.formats import lattices
from lmtools.types import Arc, Final, Lattice

LINES = "the:3:0.909 that:3:0.069 *DELETE*:3:0.022 phone:4:0.976\n\na:b:0:1 <eps>:1:0.25\n"


def read(tmp_path, text, spec=None):
    (tmp_path / "x").write_text(text)
    return lattices.read(tmp_path / "x", spec)


def test_slots_are_states_in_a_row(tmp_path):
    first, empty, last = read(tmp_path, LINES)
    assert [(a.source, a.target, a.word) for a in first.arcs()] == [
        (0, 1, "the"),
        (0, 1, "that"),
        (0, 1, None),
        (1, 2, "phone"),
    ]
    assert first.scores["am"].tolist() == [math.log(p) for p in (0.909, 0.069, 0.022, 0.976)]
    assert first.extra["slot"] == ("3", "3", "3", "4")
    assert (empty.utt, empty.states, empty.finals.tolist()) == ("2", 1, [0])
    assert last.words == ("a:b", None) and last.extra["symbol"] == ("", "<eps>")


def test_comes_back_to_the_letter(tmp_path):
    lattices.write(read(tmp_path, LINES), tmp_path / "y", "wcn")
    assert (tmp_path / "y").read_text() == LINES


def test_what_is_missing_can_become_an_arc(tmp_path):
    (lattice,) = read(tmp_path, "a:0:0.75 b:1:1\n", "wcn:missing=epsilon")
    assert sentences(lattice, {"am": 1.0}) == pytest.approx(
        {("a", "b"): math.log(0.75), ("b",): math.log(0.25)}
    )


@pytest.mark.parametrize("text", ["a:0:1\nb:0:0.3 c:0:0.1 d:1:1\n", "a:0:1\nb:5:0.02\n"])
def test_slots_that_lack_more_than_their_best_word_have_to_be_explained(tmp_path, text):
    """Words alone would be 109% WER, where what is missing is no word."""
    slot, total = ("0", "0.4") if "b:0" in text else ("5", "0.02")
    with pytest.raises(
        UserError,
        match=(
            rf"x:2: the posteriors of slot {slot} sum to {total}, .*; read it as"
            r" wcn:missing=epsilon if"
        ),
    ):
        read(tmp_path, text)
    assert [len(one.words) for one in read(tmp_path, text, "wcn:missing=nothing")] == [
        1,
        text.count(":") // 2 - 1,
    ]
    assert [one.words.count(None) for one in read(tmp_path, text, "wcn:missing=epsilon")] == [0, 1]
    # here or elsewhere: the writer writes what is no word, and pruned the rest
    for null in ("*DELETE*", "<eps>"):
        for more in (
            f"{text}z:0:0.5 {null}:0:0.5\n",
            text.replace("a:0:1", f"a:0:0.5 {null}:0:0.4"),
        ):
            assert len(read(tmp_path, more)) == 2 + more.count("z")


def test_pruned_slots_are_read_as_they_are(tmp_path):
    (lattice,) = read(tmp_path, "a:0:0.5 b:0:0.1 c:1:0.501\n")
    assert None not in lattice.words


@pytest.mark.parametrize(
    "skip", [Arc(0, 2, "b", {"am": -1.0}), Arc(1, 2, "*DELETE*", {"am": -1.0})]
)
def test_writes_confusion_networks_only(tmp_path, skip):
    lattice = Lattice.of(
        "u", 3, 0, [Arc(0, 1, "a", {"am": -1.0}), Arc(1, 2, "c", {"am": -1.0}), skip], [Final(2)]
    )
    with pytest.raises(UserError, match=r"no confusion network|stands for no word"):
        lattices.write([lattice], tmp_path / "y", "wcn")
