import io
import sys

import pytest

from lmtools.cli import main
from lmtools.formats import jsonl, kaldi_text
from lmtools.types import Hypothesis, NBest

LISTS = [NBest("a", tuple(Hypothesis(t, {"am": -1.0}) for t in ["x y", "x y", "y", "z"])), NBest("b", (Hypothesis("w", {"am": -2.0}),))]


@pytest.fixture
def nbest(tmp_path):
    jsonl.write(LISTS, tmp_path / "n.jsonl")
    kaldi_text.write({"b": "ref b", "a": "ref a"}, tmp_path / "ref")
    return tmp_path


def test_there_and_back(nbest):
    assert main(["convert", f"{nbest}/n.jsonl", f"{nbest}/dir", "--to", "espnet2"]) == 0
    assert main(["convert", f"{nbest}/dir", f"{nbest}/back.jsonl.xz"]) == 0
    assert jsonl.read(nbest / "back.jsonl.xz") == LISTS


def test_references_dedup_then_depth(nbest, capsys):
    assert main(["convert", f"{nbest}/n.jsonl", f"{nbest}/o.jsonl", "--ref", f"{nbest}/ref", "--dedup", "--depth", "2"]) == 0
    found = jsonl.read(nbest / "o.jsonl")
    assert [(n.ref, [h.text for h in n.hyps]) for n in found] == [("ref a", ["x y", "y"]), ("ref b", ["w"])]
    assert "2 utterances, 3 hypotheses" in capsys.readouterr().err


def test_best_as_kaldi_text_from_and_to_streams(nbest, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((nbest / "n.jsonl").read_bytes())))
    assert main(["convert", "-", "-", "--from", "jsonl", "--to", "kaldi-text", "--depth", "1"]) == 0
    assert capsys.readouterr().out == "a x y\nb w\n"


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["n.jsonl", "o.trn", "--to", "trn"], "--depth 1"),
        (["ref", "o.jsonl"], "--from"),
        (["none", "o.jsonl"], "none: cannot read"),
        (["empty.jsonl", "o.jsonl"], "no utterances"),
        (["n.jsonl", "o.jsonl", "--ref", "short"], "1 of 2 utterances"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(nbest, arguments, cause, capsys, monkeypatch):
    monkeypatch.chdir(nbest)
    (nbest / "empty.jsonl").write_text("")
    (nbest / "short").write_text("a x\n")
    assert main(["convert", *arguments]) == 1
    message = capsys.readouterr().err
    assert cause in message and message.count("\n") == 1
    assert not list(nbest.glob("o.*"))


def test_depth_below_one_is_wrong_usage(nbest):
    with pytest.raises(SystemExit) as caught:
        main(["convert", f"{nbest}/n.jsonl", f"{nbest}/o.jsonl", "--depth", "0"])
    assert caught.value.code == 2
