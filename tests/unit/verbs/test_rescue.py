"""lmtools rescue: equal to the commands that it prints, refusals, repeated runs."""

import random
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from toys import WORDS, sentences

import lmtools
from lmtools.cli import main
from lmtools.formats import jsonl, kaldi_text
from lmtools.types import Hypothesis, NBest
from lmtools.verbs.rescue import draw_table

CALL = "rescue --dev dev.jsonl --test test.jsonl --out out --cache none"


def noisy_lists(count: int, seed: int) -> list[NBest]:
    """Lists of three hypotheses, of which the first often has wrong words."""
    rng, nbests = random.Random(seed), []
    for number, line in enumerate(sentences(count, seed)):
        wrong = [
            " ".join(rng.choice(WORDS) if rng.random() < share else word for word in line.split())
            for share in (0.3, 0.6)
        ]
        texts = [line, *wrong] if rng.random() < 0.3 else [*wrong, line]
        hyps = [Hypothesis(text, {"am": -rank + rng.random()}) for rank, text in enumerate(texts)]
        nbests.append(NBest(f"u{seed}-{number}", tuple(hyps), line))
    return nbests


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Lists and text, in the working directory."""
    monkeypatch.chdir(tmp_path)
    for name, seed in (("dev", 1), ("test", 2)):
        jsonl.write(noisy_lists(40, seed), tmp_path / f"{name}.jsonl")
    (tmp_path / "my text").write_text("\n".join(sentences(500, 3)) + "\n")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of every file in a directory."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def commands(printed: str) -> list[list[str]]:
    """The words of the commands that are printed."""
    lines = re.findall(r"^lmtools (.*)", printed, re.MULTILINE)
    return [shlex.split(line) for line in lines]


@pytest.mark.parametrize(
    ("more", "best"),
    [
        ("--text 'my text' --normaliser librispeech", "wer"),
        ("--text 'my text' --lm two=two --metric cer --max-line 1M", "cer"),
        ("--lm one=one --lm 'two=mix:one=0.5,two=0.5'", "wer"),
    ],
)
def test_equal_to_the_commands_that_it_prints(home, capsys, more, best):
    for name, order in (("one", 3), ("two", 1)):
        assert main(["ngram", "--text", "my text", "--order", f"{order}", "--out", name]) == 0
    capsys.readouterr()
    assert main([*shlex.split(CALL), *shlex.split(more)]) == 0
    printed = capsys.readouterr().out
    made = contents(home / "out")
    assert {"weights.json", "test.txt", "test.json", "no-lm.weights.json"} <= made.keys()
    (home / "out").rename(home / "first")
    (home / "out").mkdir()
    words = commands(printed)
    assert all(main(line) == 0 for line in words)
    assert contents(home / "out") == made
    verbs = [line[0] for line in words]
    assert verbs.count("score") == 2 * (more.count("--text") + more.count("--lm"))
    table = printed.partition("\n\n")[2].splitlines()
    assert best.upper() in table[0]
    scores = [float(re.search(r"  +([\d.]+)", line)[1]) for line in table[1:]]
    assert scores[0] > scores[2] >= scores[3] and 0 < float(table[3].split()[-1]) < 1


def test_lists_without_references_are_rescored(home, capsys):
    bare = [replace(nbest, ref=None) for nbest in jsonl.read("test.jsonl")]
    jsonl.write(bare, home / "test.jsonl")
    assert main([*CALL.split(), "--text", "my text"]) == 0
    assert "test.jsonl has no references" in capsys.readouterr().out
    assert kaldi_text.read("out/test.txt").keys() == {nbest.utt for nbest in bare}


def test_a_killed_run_goes_on(home):
    call = [*CALL.split(), "--text", "my text"]
    script = (
        "import os, sys; from lmtools.verbs import score; score.run = lambda args:"
        " os.kill(os.getpid(), 9)\nfrom lmtools.cli import main; main(sys.argv[1:])"
    )
    done = subprocess.run([sys.executable, "-c", script, *call], capture_output=True)
    assert done.returncode == -9
    assert {"no-lm.test.txt", "lm"} <= {path.name for path in (home / "out").iterdir()}
    assert main(call) == 0
    again = contents(home / "out")
    (home / "out").rename(home / "first")
    assert main(call) == 0 and contents(home / "out") == again


def test_lists_and_text_of_another_case(home, capsys):
    """The option that the refusal names is one of rescue's own, and works."""
    text = home / "my text"
    text.write_text(text.read_text().upper())
    call = [*CALL.split(), "--text", "my text"]
    assert main(call) == 1
    *_, said = capsys.readouterr().err.splitlines()
    assert said.startswith("lmtools rescue: my text:1: the text in my text has upper case, ")
    (option,) = re.findall(r"add (--normaliser \S+) to lmtools rescue", said)
    assert main([*call, *option.split()]) == 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "no language model; give --text F"),
        ("--lm one", "--lm one: not NAME=LM"),
        ("--lm a/b=one", "cannot name a directory"),
        ("--lm a=x --lm a=y", "a second one called 'a'"),
        ("--lm 'ngram=my text' --text 'my text'", "--lm ngram: "),
        ("--lm a=x", "--lm a=x: no such language model"),
        ("--lm a=hf:x", "--lm a=hf:x: no such language model"),
        ("--lm 'am=my text'", "--lm am: dev.jsonl has a score of this name"),
        ("--lm 'words=my text'", "--lm words: dev.jsonl has a score of this name"),
        ("--lm 'a=my text' --normaliser librispeech", "--normaliser: is of --text"),
        ("--text none", "none"),
        ("--text 'my text' --dev -", "--dev -: is read several times"),
        ("--text 'my text' --dev 'ark:x |'", "is read several times"),
        ("--text 'my text' --dev none", "none: "),
        ("--text 'my text' --dev bare", "bare: utterance 'u1-0' has no reference"),
        ("--text 'my text' --test some", "some: utterance 'u1-0' has no reference"),
        ("--text 'my text' --test empty", "empty"),
        ("--text 'my text' --out 'my text'", "my text: cannot write"),
        (
            "--text 'my text' --dev upper",
            "upper case; metrics compare words as they are: write both alike, lmtools convert"
            " --normaliser none --case lower (for --dev and --test alike)",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(home, capsys, more, said):
    nbests = noisy_lists(3, 1)
    bare = [replace(nbest, ref=None) for nbest in nbests]
    upper = [
        replace(one, hyps=tuple(replace(hyp, text=hyp.text.upper()) for hyp in one.hyps))
        for one in nbests
    ]
    jsonl.write(bare, home / "bare")
    jsonl.write([*bare[:1], *nbests[1:]], home / "some")
    jsonl.write(upper, home / "upper")
    (home / "empty").write_text("")
    before = contents(home)
    words = shlex.split(more)
    usual = dict(zip(*[iter(CALL.split()[1:])] * 2, strict=True))  # but for what is given anew
    usual = [word for pair in usual.items() if pair[0] not in words for word in pair]
    assert main(["rescue", *usual, *words]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert errors[-1].startswith("lmtools rescue: ") and said in errors[-1]
    assert len(errors[-1]) <= 500
    assert "upper" in said or contents(home) == before


@pytest.mark.parametrize(
    ("more", "package"),
    [("--text 'my text'", "kenlm"), ("--lm old=out.lm", "kenlm"), ("--lm new=hf:m", "transformers"),
     ("--lm mixed=mix:out.lm=0.5,out.lm=0.5", "kenlm")],
)  # fmt: skip
def test_a_missing_package_is_told_before_the_first_step(home, capsys, monkeypatch, more, package):
    monkeypatch.setitem(sys.modules, package, None)
    (home / "m").mkdir()
    (home / "out.lm").write_text("")
    assert main([*shlex.split(CALL), *shlex.split(more)]) == 1
    said = capsys.readouterr()
    assert re.search(rf": needs the package {package}; .*pip install", said.err)
    assert said.err.count("\n") == 1 and not said.out and not (home / "out").exists()


def test_dev_is_not_test_and_references_are_not_text(home, capsys):
    """An error, since the table would flatter."""
    call = "rescue --dev dev.jsonl --test dev.jsonl --text 'my text' --out out --cache none"
    assert main(shlex.split(call)) == 1
    assert "--test dev.jsonl: has the lists of --dev" in capsys.readouterr().err
    texts = [nbest.ref for nbest in jsonl.read("test.jsonl")]
    long = [f"{text} {other}" for text, other in zip(texts, texts[::-1], strict=True)]
    lists = [NBest(f"l{i}", (Hypothesis(t, {"am": -1.0}),), t) for i, t in enumerate(long)]
    jsonl.write(lists, home / "test.jsonl")
    (home / "leaky").write_text("\n".join(long * 9) + "\n")
    assert main(shlex.split(f"{CALL} --text leaky")) == 1
    assert "the LM has seen the references" in capsys.readouterr().out


def test_unknown_words_are_told_by_every_way(home, capsys):
    assert main(shlex.split("ngram --text 'my text' --order 2 --out lm")) == 0
    upper = [
        replace(nbest, hyps=tuple(replace(h, text=h.text.upper()) for h in nbest.hyps))
        for nbest in jsonl.read("test.jsonl")
    ]
    jsonl.write(upper, home / "upper.jsonl")
    capsys.readouterr()
    for call in (
        "score --nbest upper.jsonl --lm lm --out s",
        "rescore --nbest upper.jsonl --lm new=lm --weights default:whisper --out t",
    ):
        assert main(shlex.split(call)) == 0
        assert "tokens are unknown to lm" in capsys.readouterr().err
    with pytest.warns(UserWarning, match="tokens are unknown to lm"):
        lmtools.load("lm").rescore(upper, "default:whisper")


def test_the_table_says_which_test_and_what_is_undefined(home):
    """Ten mended errors: the matched pairs test is undefined; no words at all: so is the score."""
    wrong = {f"u{number}": "a x c" for number in range(10)}
    texts = {"old": wrong, "new": dict.fromkeys(wrong, "a b c"), "none": dict.fromkeys(wrong, "")}
    for name, each in texts.items():
        kaldi_text.write(each, name)

    def table(ref):
        for before, against in (("no-lm.", "new"), ("", "old"), ("oracle.", "new")):
            words = ["--ref", ref, "--hyp", "new", "--against", against]
            assert main(["evaluate", *words, "--out", f"{before}test.json"]) == 0
        return list(draw_table(Path(), "wer"))

    row = next(row for row in table("new") if row.startswith("with LM"))
    assert row.split(maxsplit=2)[2].split(maxsplit=1)[1] == "0.00, 0.00      0.002 (sign test)"
    assert all(row.split()[-2:] == ["-", "-"] for row in table("none")[1:])
