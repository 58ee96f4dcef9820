"""`lmtools evaluate` by NIST's rules: an stm beside a ctm, global maps, and their tables."""

import json
from pathlib import Path
from shlex import split

import pytest

from lmtools.cli import main
from lmtools.formats import jsonl, kaldi_text
from lmtools.types import Hypothesis, NBest


def output(capsys, *arguments):
    assert main(["evaluate", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


GLM = """;; rules
* case_sensitive = 'F'
UH => (%HES) / [ ] __ [ ]
;; INPUT_DEPENDENT_APPLICATION = "ctm"
HE'S => [{HE IS / HE HAS}] / [ ] __ [ ]
"""


@pytest.fixture
def spoken(tmp_path, monkeypatch):
    """The same speech as stm and ctm, Kaldi text, trn, and a list with its reference."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.glm").write_text(GLM)
    (tmp_path / "r.stm").write_text(
        "r 1 ann 0 2.0 <o,f> uh he has gone\nr 1 bob 2.0 3.0 <o,m> ok\n"
    )
    times = ((0.1, "he's"), (0.5, "gone"), (1.9, "now"), (2.1, "ok"))
    (tmp_path / "h.ctm").write_text("".join(f"r 1 {at} 0.1 {word}\n" for at, word in times))
    refs, hyps = (
        {"ann-1": "uh he has gone", "bob-1": "ok"},
        {"ann-1": "he's gone now", "bob-1": "ok"},
    )
    kaldi_text.write(refs, "ref")
    kaldi_text.write(hyps, "hyp")
    (tmp_path / "ref.trn").write_text("(%hes) he has gone (ann-1)\nok (bob-1)\n")
    (tmp_path / "hyp.trn").write_text("{ he is / he has } gone now (ann-1)\nok (bob-1)\n")
    lists = [NBest(utt, (Hypothesis(text),), refs[utt]) for utt, text in hyps.items()]
    jsonl.write(lists, "n.jsonl")


@pytest.mark.parametrize(
    "files",
    [
        "--ref r.stm --hyp h.ctm --glm a.glm",
        "--ref ref --hyp hyp --glm a.glm",
        "--hyp n.jsonl --glm a.glm",
        "--ref ref --hyp n.jsonl --glm a.glm",
        "--ref ref.trn --hyp hyp.trn --metric wer:rules=hub5",
    ],
)
def test_nist_rules_whatever_the_format(spoken, capsys, files):
    (line,) = output(capsys, *split(files))
    assert line.startswith("WER 20.00%") and "(0 sub, 0 del, 1 ins; 5 words, 2 utterances)" in line
    assert "|case:insensitive|" in line and "|rules:hub5|" in line
    assert ("|norm:glm:a.glm:" in line) == ("--glm" in files)


def test_nist_without_optional_words(spoken, capsys):
    (line,) = output(capsys, *split("--ref ref.trn --hyp hyp.trn --metric wer:rules=sclite"))
    assert "(0 sub, 1 del, 1 ins; 5 words" in line


def test_tables(spoken, capsys):
    files = split("--ref r.stm --hyp h.ctm --glm a.glm --against h.ctm --out o.json")
    lines = output(capsys, *files, "--by", "speaker", "label", "length", "words")
    assert "  ann      1 utterances  WER 25.00%  0 sub, 0 del, 1 ins; 4 words" in lines
    assert "  o,f      1 utterances  WER 25.00%  0 sub, 0 del, 1 ins; 4 words" in lines
    assert lines[lines.index("insertions: 1") + 1].split() == ["1", "now"]
    assert any(line.startswith("matched pairs (MAPSSWE)") for line in lines)
    tree = json.loads(Path("o.json").read_text())
    assert tree["by words"]["insertions"] == [["now", 1]]
    assert [part["name"] for part in tree["by speaker"]] == ["ann", "bob"]
    assert [part["insertions"] for part in tree["by length"]] == [1]


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        ("--glm a.glm --normaliser librispeech", "--glm has rules of words of its own"),
        ("--glm a.glm --metric cer", "--glm: is for word error rates"),
        ("--by colour", "--by colour: parts are"),
        ("--by label", "label needs an stm"),
    ],
)
def test_options_that_do_not_go_together(spoken, capsys, more, cause):
    assert main(["evaluate", *split(f"--ref ref --hyp hyp {more}")]) == 1
    assert cause in capsys.readouterr().err
