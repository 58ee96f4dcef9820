"""Texts read before hypotheses, which have no score: from a file of the user's."""

import pytest

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.score.prompts import Prompts
from lmtools.types import Hypothesis, NBest

LIST = NBest("u1", (Hypothesis("a cat"), Hypothesis("the cat")), extra={"topic": "pets {utt}"})


def test_placeholders_have_what_the_lists_say(tmp_path):
    """Fields are text: what looks like a placeholder in one stays; other braces are text."""
    (tmp_path / "p.txt").write_text("About {topic} {1} {}:\n{best}\n\n")
    prompts = Prompts.read(str(tmp_path / "p.txt"))
    assert prompts.fill(LIST) == "About pets {utt} {1} {}:\na cat\n"
    assert prompts.pair([LIST], 0, "") == [
        (prompts.fill(LIST), text) for text in ("a cat", "the cat")
    ]
    with pytest.raises(UserError, match=r"p.txt:1: \{topic\}: a text alone has no such field"):
        prompts.alone()
    (tmp_path / "q.txt").write_text("One\n{previous} then")
    with pytest.raises(UserError, match=r"q.txt:2: \{previous\}: utterance 'u1' has no such field"):
        Prompts.read(str(tmp_path / "q.txt")).fill(LIST)


def test_utterances_have_prompts_of_their_own(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text('{"id": "u1", "prompt": "Pets:"}\n{"id": "u2", "prompt": ""}\n')
    assert Prompts.read(str(path)).fill(LIST) == "Pets:"
    with pytest.raises(UserError, match="no prompt for 'u3'"):
        Prompts.read(str(path)).fill(NBest("u3", ()))
    path.write_text('{"id": "u1", "prompt": "Pets:"}\n' * 2)
    with pytest.raises(UserError, match=r"p.jsonl:2: a second prompt of 'u1'"):
        Prompts.read(str(path))


def test_an_ngram_reads_a_prompt(tmp_path, capsys):
    """log p(text | prompt): less than one sentence of both by that of the prompt's words."""
    (tmp_path / "t").write_text("the cat sat\na cat sat\nthe dog ran\n" * 3)
    (tmp_path / "p.txt").write_text("the\n")
    (tmp_path / "l.jsonl").write_text('{"utt": "u", "hyps": [{"text": "cat sat"}]}\n')
    lm, lists = str(tmp_path / "lm"), str(tmp_path / "l.jsonl")
    files = ["--text", str(tmp_path / "t"), "--out", lm, "--order", "2"]
    assert main(["ngram", *files]) == 0
    scores = []
    for given in (f"{lm},prompt={tmp_path / 'p.txt'}", lm):
        assert main(["score", "--nbest", lists, "--lm", given, "--out", "-"]) == 0
        lines = capsys.readouterr().out.splitlines()
        scores += [line.split() for line in lines if line.startswith("u#")]
    assert scores[0][2] == scores[1][2] and float(scores[0][1]) > float(scores[1][1])
    assert main(["score", "--nbest", lists, "--lm", f"{lm},form=sentence", "--out", "-"]) == 1
    assert "leave form=sentence out" in capsys.readouterr().err
