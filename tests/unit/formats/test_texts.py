"""Kaldi text that is something else."""

from pathlib import Path

import pytest

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats.texts import read_texts

LISTS = "u1 blue finch\nu2 a bird\n"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("u1 2.5\nu2 3.125\n", "looks like Kaldi's utt2dur"),
        ("u1 rec 0.00 2.50\nu2 rec 2.5 4.0\n", "looks like Kaldi's segments"),
        ("u1 rec 0.00 -1\nu2 rec 2.5 4.0 A\n", "looks like Kaldi's segments"),
        ("u1 /d/a.wav\nu2 sph2pipe -f wav x.sph |\n", "looks like Kaldi's wav.scp"),
        ("u1 feats.ark:12\nu2 feats.ark:345[0:3]\n", "looks like Kaldi's an scp file"),
        ("the house\nthe dog\n", ":2: utterance 'the' .*; keep one of them, or give .* --x if"),
        ("The dog sat\nA dog the\nthat a dog\n", "first words such as 'The' .* with --x if"),
        ("Yes sir.\nNo way!\nWhy not?\n", "first words such as 'Yes'"),
    ],
)
def test_what_is_no_text_by_utterance_is_told(tmp_path, content, what):
    (tmp_path / "f").write_text(content)
    with pytest.raises(UserError, match=what):
        read_texts(tmp_path / "f", "--x")


@pytest.mark.parametrize(
    "content",
    [
        "u1 2.5\nu2 two\n",  # a spoken number
        "u1 7\nu2 345\n",
        "yes_0a7c yes\nno_1b yes\n",
        "anna hello there\nbert good evening\ncarl a b\n",  # ids without digits
        "u1 a /d/a.wav\n",
        "",
    ],
)
def test_text_stays_text(tmp_path, content):
    (tmp_path / "f").write_text(content)
    rows = (line.partition(" ") for line in content.splitlines())
    assert read_texts(tmp_path / "f") == {utt: text for utt, _, text in rows}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("ref", "hyp"),
    [
        ("the house is small\nthe dog runs\n", "the house is little\nthe dog runs\n"),
        ("this house\nthat dog runs\na man\n", "The house\nthat dog runs\na man\n"),
        ("the dog sat\na dog the\nthat a dog\n", "the dog sat\na dog the\nthat a cat\n"),
    ],
)
def test_a_forgotten_plain_is_the_remedy(here, capsys, ref, hyp):
    Path("ref").write_text(ref)
    Path("hyp").write_text(hyp)
    verb = ["evaluate", "--ref", "ref", "--hyp", "hyp"]
    assert main(verb) == 1
    assert "--plain" in capsys.readouterr().err
    assert main([*verb, "--plain"]) == 0


def test_formats_are_named_of_hypotheses_then_references(here, capsys):
    """A format that is named is not looked into: neither its ids nor what it may be instead."""
    for name, content in (
        ("hyp", "red fox (u1)\nbird (u2)\n"),
        ("ref", "u1 2.5\nu2 3.5\n"),
        ("words", "the dog sat\na dog the\nthat a dog\n"),
    ):
        Path(name).write_text(content)
    verb = ["evaluate", "--ref", "ref", "--hyp", "hyp", "--format"]
    assert main([*verb, "trn", "kaldi-text"]) == 0
    assert "WER 150.00%" in capsys.readouterr().out
    assert main([*verb, "trn"]) == 1
    assert "ref: looks like Kaldi's utt2dur" in capsys.readouterr().err
    for more in (["trn", "trn", "trn"], ["trn", "--plain"], ["x"]):
        assert main([*verb, *more]) == 1
        assert "--format: " in (printed := capsys.readouterr().err) or "no format is" in printed
    both = "evaluate --ref words --hyp words --format kaldi-text kaldi-text"
    assert main(both.split()) == 0
    assert "WER 0.00%" in capsys.readouterr().out
