"""Text of which a model knows little is told of, by every verb alike, with the words, why and what
to do; other text is not.
"""

import io
import json
import subprocess
import sys

import pytest

from lmtools.cli import main
from lmtools.text.unknown import explain, warn_unknown

LIKE = "give text like that of the model's vocabulary"
KNOWN = {"the", "king", "it's", "up"}.__contains__
TEXT = "the king went\nand the queen came\nit's up to the king\n" * 30


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ({"THE": 5, "KING": 2, "X": 3}, "--case lower"),
        ({"the,": 5, "king.": 2}, "--punctuation strip"),
        ({"it’s": 5}, "--apostrophe straight"),
        ({"The,": 5, "KING!": 2}, "--normaliser librispeech"),
        ({"ki\u00adng": 5, "u\u200bp": 2}, "--unify invisible"),
        ({"ｋｉｎｇ": 5, "Ｕ": 1}, "--unify nfkc"),
        ({"der": 5, "König": 2, "The": 1}, ""),
    ],
)
def test_why_words_are_unknown(words, option):
    assert explain(words, KNOWN)[1] == option


def test_one_line_above_the_threshold_only(capsys):
    warn_unknown("t", 20, 100, "lm", ["X y X"], KNOWN)
    assert capsys.readouterr().err == ""
    warn_unknown("n.jsonl", 1500, 2000, "lm", ["THE KING THE", "<unk> the UP"], KNOWN, lists=True)
    said = (
        "warning: n.jsonl: 75% of 2,000 tokens are unknown to lm, most often 'THE', 'KING', 'UP':"
        " most of them are known in lower case; "
    )
    assert capsys.readouterr().err == said + "lmtools convert --normaliser none --case lower\n"
    warn_unknown("n.jsonl", 3, 4, "lm", ["der die der"], KNOWN, lists=True)
    assert capsys.readouterr().err.endswith(
        "or other tokens?; lmtools doctor --nbest n.jsonl --lm lm says more\n"
    )
    warn_unknown("t.bin", 3, 4, "its vocabulary")
    assert (
        capsys.readouterr().err
        == f"warning: t.bin: 75% of 4 tokens are unknown to its vocabulary; {LIKE}\n"
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t").write_text(TEXT)
    (tmp_path / "T").write_text(TEXT.upper())
    rows = [
        {"utt": f"u{i}", "hyps": [{"text": line.upper()}]}
        for i, line in enumerate(TEXT.splitlines()[:3])
    ]
    (tmp_path / "n.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "low.jsonl").write_text("".join(f"{json.dumps(row)}\n".lower() for row in rows))
    assert main(["ngram", "--text", "t", "--order", "2", "--kenlm", "none", "--out", "ng"]) == 0
    assert main(["subword", "--text", "t", "--type", "word", "--out", "sw"]) == 0
    return tmp_path


SCORE = ["score", "--lm", "ng", "--cache", "none", "--out", "o", "--nbest"]
VERBS = {
    "score": (
        [*SCORE, "n.jsonl"],
        "warning: n.jsonl: 100% of 12 tokens are unknown to ng, most often 'THE', 'KING', ",
    ),
    "score pipe": (
        [*SCORE, "-"],
        "warning: -: 100% of 12 tokens are unknown to ng, most often 'THE', 'KING', ",
    ),
    "ppl": (
        ["ppl", "--lm", "ng", "--cache", "none", "--text", "T"],
        "warning: T: 100% of 360 tokens are unknown to ng, most often 'THE', 'KING', ",
    ),
    "corpus": (
        ["corpus", "--subword", "sw", "--out", "o.bin", "--text", "T"],
        "warning: T: 100% of 360 tokens are unknown to sw, most ",
    ),
    "ngram": (
        ["ngram", "--subword", "sw", "--order", "2", "--out", "o", "--text", "T"],
        "warning: T: 100% of 360 tokens are unknown to sw, most ",
    ),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_says_so(here, capsys, monkeypatch, verb):
    words, line = VERBS[verb]
    for path, expected in (("n.jsonl", 1), ("low.jsonl", 0)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((here / path).read_bytes())))
        capsys.readouterr()
        low = {} if expected else {"n.jsonl": "low.jsonl", "T": "t"}
        assert main([low.get(word, word) for word in words]) == 0
        said = [row for row in capsys.readouterr().err.splitlines() if "are unknown to" in row]
        assert len(said) == expected and all(
            row.startswith(line) and "--case lower" in row for row in said
        ), said


def test_a_pipe_is_not_read_twice(here):
    """What is looked at for the warning is not missing from the model."""
    command = (
        "cat t | {} -m lmtools ngram --subword sw --order 2 --kenlm none --out p --text <(cat t) -"
    )
    done = subprocess.run(
        ["bash", "-c", command.format(sys.executable)], capture_output=True, text=True, check=False
    )
    assert "180 sentences" in done.stdout, done


def test_train_says_so(tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "T").write_text(TEXT.upper())
    assert main(["corpus", "--text", "T", "--subword", str(tiny / "sw"), "--out", "T.bin"]) == 0
    (tmp_path / "c.yaml").write_text(
        "model: lstm\nobjective: causal\narch: {layers: 1, dim: 8, units: 8}\nsteps: 1\n"
    )
    capsys.readouterr()
    corpora = ["--train", "T.bin", "--valid", str(tiny / "valid.bin")]
    assert main(["train", "--conf", "c.yaml", *corpora, "--out", "lm", "--device", "cpu"]) == 0
    said = [row for row in capsys.readouterr().err.splitlines() if "unknown" in row]
    assert said == [f"warning: T.bin: 100% of 360 tokens are unknown to its vocabulary; {LIKE}"]


@pytest.mark.parametrize(
    ("line", "kind", "left"),
    [
        ("u-{0} the king came", "utterance ids", "the king came"),
        ("the king came (u-{0})", "utterance ids at their ends", "the king came"),
        ("LJ-{0}|the king came", "columns", "the king came"),
        ("s{0}\tthe king came", "columns with tabs", "the king came"),
        ("[00:{0}.000 --> 00:59.000] the king came", "times", "the king came"),
        ("{0}. the king came", "numbers of lines", "the king came"),
        ("<p>the king came</p>", "tags", "the king came"),
        ("the/DT king/NN came/VBD", "parts of speech", "the king came"),
        ("the king came in 19{0}", None, None),
        ("<s> the king came </s>", None, None),
    ],
)
def test_text_with_more_than_words_is_told(tmp_path, capsys, line, kind, left):
    """By ngram and subword, with a command that works."""
    text = tmp_path / "t"
    text.write_text("".join(line.format(n) + "\n" for n in range(10, 40)))
    for verb in ("ngram --order 2", "subword --type word"):
        assert main([*verb.split(), "--text", str(text), "--out", str(tmp_path / verb[:5])]) == 0
        said = [
            one for one in capsys.readouterr().err.splitlines() if "which a model learns" in one
        ]
        assert len(said) == (kind is not None)
        assert all(f"lines have {kind} (" in one for one in said)
    if kind:
        command = said[0].partition("; ")[2].rpartition(" > NEW")[0]
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
        assert set(done.stdout.splitlines()) == {left}
