"""A rescoring is signed in one line, and each change of what it rests on is found."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from lmtools.cli import main
from lmtools.formats import jsonl
from lmtools.types import Hypothesis, NBest


def run(*arguments, status=0):
    assert main(list(map(str, arguments))) == status


@pytest.fixture
def signed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    texts = [("a b", "a c"), ("d e f", "d e"), ("g", "h"), ("i j", "i")] * 3
    lists = [
        NBest(f"u{i}", (Hypothesis(bad, {"am": -1.0}), Hypothesis(good, {"am": -1.5})), good)
        for i, (good, bad) in enumerate(texts)
    ]
    jsonl.write(lists, "n.jsonl")
    Path("t").write_text("\n".join(good for good, _ in texts) + "\n")
    run("ngram", "--text", "t", "--order", 2, "--out", "lm")
    run("score", "--nbest", "n.jsonl", "--lm", "lm", "--out", "n.scores")
    run("tune", "--nbest", "n.jsonl", "--scores", "lm=n.scores", "--out", "w.json")
    capsys.readouterr()
    run("rescore", "--nbest", "n.jsonl", "--scores", "lm=n.scores", "--weights", "w.json",
        "--out", "n.txt", "--verbose")  # fmt: skip
    return capsys.readouterr().err.splitlines()[-1]


def verify(line, status=0, more=("--hyp", "n.txt")):
    files = ["--nbest", "n.jsonl", "--scores", "lm=n.scores", "--weights", "w.json"]
    run("verify", "--line", line, *files, *more, status=status)


def test_what_was_signed(signed, capsys):
    assert signed.startswith("rescoring|lists:") and "|metric:wer|version:lmtools-" in signed
    verify(signed)
    out = capsys.readouterr().out
    assert out.count("as signed") == 8 and "DIFFERENT" not in out
    Path("log").write_text(f"other\n{signed}\n")
    verify("log", more=())
    verify(re.sub("lmtools-.*", "lmtools-0.0.1", signed))  # an older version may have counted alike
    assert "DIFFERENT  version" in capsys.readouterr().out


def change_lists():
    first, *rest = jsonl.read("n.jsonl")
    jsonl.write([replace(first, utt=first.utt, hyps=first.hyps[::-1]), *rest], "n.jsonl")
    run("score", "--nbest", "n.jsonl", "--lm", "lm", "--out", "n.scores")


def change_first():
    lists = [
        replace(n, hyps=tuple(replace(h, scores={"am": h.scores["am"] - 0.01}) for h in n.hyps))
        for n in jsonl.read("n.jsonl")
    ]
    jsonl.write(lists, "n.jsonl")


def change_lm():
    run("ngram", "--text", "t", "--order", 1, "--out", "lm1")
    run("score", "--nbest", "n.jsonl", "--lm", "lm1", "--out", "n.scores")
    tree = json.loads(Path("w.json").read_text())
    tree["signatures"] = {}
    Path("w.json").write_text(json.dumps(tree))


def change_weights():
    tree = json.loads(Path("w.json").read_text())
    tree["features"]["lm"] *= 1.01
    Path("w.json").write_text(json.dumps(tree))


def change_text():
    Path("n.txt").write_text(Path("n.txt").read_text().replace("u0 a", "u0 x"))


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (change_lists, "lists"),
        (change_first, "first"),
        (change_lm, "lms"),
        (change_weights, "weights"),
        (change_text, "text"),
    ],
)
def test_each_change_is_found(signed, capsys, change, part):
    change()
    capsys.readouterr()
    verify(signed, status=1)
    out, err = capsys.readouterr()
    assert f"DIFFERENT  {part}" in out and part in err


@pytest.mark.parametrize("line", ["rescoring|lists:1", "nothing", "w.json"])
def test_what_is_no_line(signed, capsys, line):
    verify(line, status=1)
    assert "line" in capsys.readouterr().err
