"""Candidates that sound like what a list has, and the margin by which they win."""

import numpy as np
import pytest

import lmtools
from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.ears.propose import Sounds, propose, write_like
from lmtools.rescoring.features import Features
from lmtools.rescoring.margins import find_margin
from lmtools.types import Hypothesis

DICTIONARY = """;;; comment
we W IY1
wee W IY1
call K AO1 L
caul K AO1 L
hall HH AO1 L
it IH1 T
bear B EH1 R
bear(2) B AE1 R # rare
bill B IH1 L
shop SH AA1 P
boy B OY1
anything EH1 N IY0 TH IH2 NG
any EH1 N IY0
thing TH IH1 NG
"""


@pytest.fixture
def dictionary(tmp_path):
    (tmp_path / "dict").write_text(DICTIONARY)
    return tmp_path / "dict"


def test_words_that_sound_alike(dictionary):
    sounds = Sounds(dictionary)
    made = propose(["we", "call", "it", "any", "thing"], sounds)
    assert made["wee call it any thing"] == 0
    assert made["we hall it any thing"] == 1
    assert made["we call it anything"] == 0
    assert "we call it any thing" not in made
    assert propose(["shopboy"], sounds) == {"shop boy": 1}
    assert propose(["anything"], sounds)["any thing"] == 1


def test_candidates_are_written_as_the_answer_was():
    hyp = Hypothesis("we call it bear", written="We call it: Bear.")
    assert write_like(hyp, ["we", "call", "it", "bill"]) == "We call it: Bill."
    assert write_like(hyp, ["wee", "call", "bear"]) == "Wee call Bear."
    assert write_like(Hypothesis("we call"), ["we"]) is None


def test_lists_with_candidates(dictionary, tmp_path, capsys):
    (tmp_path / "text").write_text("we call it bill\nwe call it bear\n" * 20)
    options = ["--text", str(tmp_path / "text"), "--order", "2"]
    assert main(["ngram", *options, "--out", str(tmp_path / "lm")]) == 0
    nbest = lmtools.NBest.of("a", ["we caul it bear"], "we call it bear", am=[-1.0])
    lmtools.write([nbest], tmp_path / "lists.jsonl")
    given = ["--nbest", str(tmp_path / "lists.jsonl"), "--lm", str(tmp_path / "lm")]
    out = ["--out", str(tmp_path / "more.jsonl"), "--depth", "1"]
    assert main(["network", "propose", *given, *out, "--dictionary", str(dictionary)]) == 0
    (made,) = lmtools.read(tmp_path / "more.jsonl")
    assert [(hyp.text, dict(hyp.scores)) for hyp in made.hyps] == [
        ("we caul it bear", {"am": -1.0, "near": 0.0}),
        ("we call it bear", {"am": -1.0, "near": -1.0}),
    ]
    assert made.hyps[1].extra == {"source": "near"}
    assert "oracle WER 25.00 -> 0.00" in capsys.readouterr().err
    (tmp_path / "none").write_text("\n")
    with pytest.raises(UserError, match="no pronunciations"):
        Sounds(tmp_path / "none")


def make_features(count: int, wins: int) -> tuple[np.ndarray, Features, np.ndarray]:
    """Lists of an own hypothesis and a new one 2 nats above it, which is right in `wins`."""
    near = np.tile([0.0, -1.0], (count, 1))
    gains = np.zeros((count, 2))
    gains[:, 1] = np.where(np.arange(count) < wins, 1, -1)
    rest = np.tile([0.0, 2.0], (count, 1))
    rest[wins:, 1] = 0.5
    return rest, Features(("near",), near[None], np.ones((count, 2), bool)), gains


def test_new_hypotheses_win_only_beyond_doubt():
    note = find_margin(*make_features(20, 12))
    assert note["new"] and 0.5 < note["margin"] < 2 and note["with"] - note["without"] == 12
    note = find_margin(*make_features(20, 3))
    assert not note["new"] and note["margin"] > 100
