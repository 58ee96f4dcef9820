"""`lmtools show`: lists with the errors of hypotheses, for people."""

import io
import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmtools.cli import main
from lmtools.formats import FORMATS, jsonl
from lmtools.types import Hypothesis, NBest
from lmtools.verbs.show import COLOURS, PLAIN, list_lines, mark_errors

LISTS = [
    NBest.of("u1", ["the cat sat", "a cat sat down", "cat"], "the cat sat", am=[-1, -2.5, -3]),
    NBest.of("u2", ["no reference", "no references"], am=[0, 0]),
    NBest.of("u3", ["x", "y"], "x", am=[1, 2]),
]
RED, GREEN, YELLOW = (COLOURS[letter][0] for letter in "DIS")
END = "\x1b[0m"


@pytest.fixture
def show(tmp_path, monkeypatch, capsys):
    """A function that runs the verb on LISTS, without colours; what it prints."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    jsonl.write(LISTS, "l.jsonl")

    def show(*words, status=0, path="l.jsonl"):
        assert main(["show", "--nbest", path, *words]) == status
        written = capsys.readouterr()
        return written.err if status else written.out

    return show


def test_lists_as_they_are_printed(show):
    assert show() == (
        "u1\n"
        "       vs ref     am\n"
        "  ref                 the cat sat\n"
        "    1       =  -1.00  the cat sat\n"
        "    2   1S 1I  -2.50  [-the-]{+a+} cat sat {+down+}\n"
        "    3      2D  -3.00  [-the-] cat [-sat-]\n"
        "\n"
        "u2\n"
        "     vs 1    am\n"
        "  1     =  0.00  no reference\n"
        "  2    1S  0.00  no [-reference-]{+references+}\n"
        "\n"
        "u3\n"
        "       vs ref    am\n"
        "  ref                x\n"
        "    1       =  1.00  x\n"
        "    2      1S  2.00  [-x-]{+y+}\n"
    )


@pytest.mark.parametrize(
    ("variables", "terminal", "coloured"),
    [
        ({}, False, False),
        ({}, True, True),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"TERM": "dumb"}, True, False),
        ({"NO_COLOR": ""}, True, True),
    ],
)
def test_colours_are_for_terminals(show, monkeypatch, variables, terminal, coloured):
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    out = io.StringIO()
    out.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stdout", out)
    show("u1")
    shown = f"{YELLOW}a{END} cat sat {GREEN}down{END}"
    assert (shown in out.getvalue(), f"{RED}sat{END}" in out.getvalue()) == (coloured, coloured)
    assert ("\x1b" in out.getvalue()) == coloured


def test_what_is_shown(show):
    assert re.findall(r"^u\d", show("--count", "2"), re.MULTILINE) == ["u1", "u2"]
    assert re.findall(r"^u\d", show("u3", "u1", "--count", "1"), re.MULTILINE) == ["u1", "u3"]
    assert show("u1", "--depth", "1").endswith("the cat sat\n  ... 2 more\n")
    assert "l.jsonl: no list of u7, u9; give ids" in show("u7", "u1", "u9", status=1)
    open("e.jsonl", "w").close()
    assert "e.jsonl: no utterances; give" in show(path="e.jsonl", status=1)


def test_references_and_normalisers_of_the_command_line(show):
    with open("ref", "w") as out:
        out.write("u1 A CAT SAT DOWN\nu2 no REFERENCE\nu3 y\n")
    found = show("--ref", "ref", "--normaliser", "librispeech", "--depth", "2")
    assert re.findall(r"^ +2 +(\S.*?)  ", found, re.MULTILINE) == ["=", "1S", "="]
    assert "no [-reference-]{+references+}" in found
    with open("lines", "w") as out:
        out.write("the cat sat down\n\nx\n")
    assert "the cat sat [-down-]" in show("--ref-lines", "lines", "--count", "3")


def test_characters(show):
    assert "[-x-]{+y+}" in show("u3", "--metric", "cer")
    assert "no reference{+s+}" in show("u2", "--metric", "cer")
    assert "[-x-]{+y+}" in show("u3", "--metric", "chrf")


def test_tokens_of_bleu(show):
    with open("ref", "w") as out:
        out.write("u1 the cat, sat\nu2 -\nu3 -\n")
    assert "1      1D  -1.00  the cat [-,-] sat" in show("u1", "--ref", "ref", "--metric", "bleu")


def test_nothing_of_a_list_reaches_the_terminal_as_it_is(show):
    hostile = "\x1b]0;x\x07 \u202e \x9b2J \0 \r"
    scores = {"a\x1b[2J": 1.0}
    tree = {"utt": "u\x1b[2J", "hyps": [{"text": hostile, "scores": scores}], "ref": f"a {hostile}"}
    with open("h.jsonl", "w") as out:
        out.write(json.dumps(tree) + "\n")
    for words in ((), ("--metric", "cer")):
        found = show(*words, path="h.jsonl")
        assert all(line.isprintable() for line in found.splitlines()) and "\\x1b" in found


@pytest.mark.parametrize("form", ["kaldi-nbest", "espnet2", "moses", "trn", "kaldi-text"])
def test_any_format(show, form):
    lists = [NBest("u1", LISTS[1].hyps[: 1 if form in ("trn", "kaldi-text") else 2])]
    if form in ("kaldi-nbest", "espnet2", "moses"):
        hyps = [Hypothesis(hyp.text, {"am": -1.0}) for hyp in lists[0].hyps]
        lists = [NBest("u1", tuple(hyps))]
    FORMATS.write(lists, "written", form)
    assert "no reference" in show("--format", form, path="written")


words = st.lists(st.sampled_from("abc"), max_size=6)


@given(words, words)
def test_marks_say_both_texts(ref, hyp):
    """Without marked insertions a hypothesis is the reference, and the reverse."""
    errors, text = mark_errors(" ".join(ref), " ".join(hyp), "wer", PLAIN)
    assert re.sub(r"\{\+\w\+\}|\[-|-\]", "", text).split() == ref
    assert re.sub(r"\[-\w-\]|\{\+|\+\}", "", text).split() == hyp
    assert (errors == "=") == (ref == hyp)
    coloured = mark_errors(" ".join(ref), " ".join(hyp), "wer", COLOURS)[1]
    assert text.count("[-") == coloured.count(RED) + coloured.count(YELLOW)
    assert text.count("{+") == coloured.count(GREEN) + coloured.count(YELLOW)


def test_a_list_without_hypotheses():
    assert list(list_lines(NBest("u", (), "a b"), "wer", PLAIN, 5))[-1].endswith("a b")
