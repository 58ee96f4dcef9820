"""sclite's stm as references, and ctm without its name."""

import pytest

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats import FORMATS, detect, read, texts

STM = """;; CATEGORY "0" "" ""
talk1 1 spk1 2.50 4.00 <o,f0,male> in the snow
talk1 1 spk1 0.00 2.50 <o,f0,male> the red fox

talk2 A spk2 0 1.5 a bird sang
talk3 A spk2 0.00 1.5 <NA>
"""
SPOKEN = {"talk1": "the red fox in the snow", "talk2": "a bird sang", "talk3": ""}


@pytest.mark.parametrize("name", ["a.stm", "references"])
def test_segments_are_one_text_in_the_order_of_time(tmp_path, name):
    (tmp_path / name).write_text(STM)
    assert detect(tmp_path / name) == "stm"
    assert {one.utt: one.hyps[0].text for one in read(tmp_path / name)} == SPOKEN
    assert texts.read_texts(tmp_path / name) == SPOKEN


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("talk 1 s 0.0", "expected `recording channel speaker begin end"),
        ("talk 1 s x 1.0 a", "begin is 'x'; expected a finite number"),
        ("talk 1 s 0.0 nan a", "end is 'nan'"),
        ("talk 1 s 0.0 1.0 { a / b }", "is markup in trn"),
        ("talk 1 s 0.0 1.0 <o> IGNORE_TIME_SEGMENT_IN_SCORING", "that is not scored"),
        ("talk 1 s 0.0 1.0 a\ntalk 2 s 1.0 2.0 b", "'talk' has two channels"),
    ],
)
def test_what_no_text_can_say_is_refused(tmp_path, line, cause):
    path = tmp_path / "a.stm"
    path.write_text(f"x 1 s 0.0 1.0 a\n{line}\n")
    with pytest.raises(UserError, match=cause):
        FORMATS.read(path)


@pytest.mark.parametrize(
    ("content", "form"),
    [
        ("u1 1 0.34 0.15 blue\nu1 1 0.5 0.1 finch 0.98\n", "ctm"),
        (";; by sclite\n\nu1 A 0 0.15 blue\n", "ctm"),
        ("u1 1 s 0 1 <o> blue\n", "stm"),
        # texts, of numbers and of single letters
        ("u1 1 2 3 four\n", None),
        ("u1 a b 1 2 blue finch\n", None),
        ("u1 1 0.34 0.15 blue\nu2 blue finch\n", None),
        ("u1 a s 2.5 1.5 blue\n", None),
        ("u1 <unk> <unk> <unk> <unk> <unk>\n", None),
    ],
)
def test_lines_are_told_by_their_times(tmp_path, content, form):
    (tmp_path / "text").write_text(content)
    assert detect(tmp_path / "text", default="kaldi-text") == (form or "kaldi-text")


@pytest.mark.parametrize(
    "verb",
    [
        "evaluate --ref refs --hyp hyp",
        "evaluate --ref hyp --hyp refs",
        "convert hyp.trn out.jsonl --ref refs",
        "doctor --nbest hyp.trn --ref refs",
    ],
)
@pytest.mark.parametrize("form", ["stm", "ctm"])
def test_every_verb_takes_them_as_references(tmp_path, monkeypatch, capsys, verb, form):
    monkeypatch.chdir(tmp_path)
    ctm = "talk1 1 0.0 0.5 red 0.9\ntalk1 1 0.5 0.5 fox\ntalk2 1 0.0 0.5 bird\n"
    stm = "talk1 1 s 0.0 0.5 <o> red fox\ntalk2 1 s 0.0 0.5 <o> bird\n"
    (tmp_path / "refs").write_text({"stm": stm, "ctm": ctm}[form])
    (tmp_path / "hyp").write_text("talk1 red fox\ntalk2 bird\n")
    (tmp_path / "hyp.trn").write_text("red fox (talk1)\nbird (talk2)\n")
    assert main(verb.split()) == 0
    printed = capsys.readouterr()
    assert not verb.startswith("evaluate") or "WER 0.00%" in printed.out
    if verb.startswith("convert"):
        assert [one.ref for one in read("out.jsonl")] == ["red fox", "bird"]
