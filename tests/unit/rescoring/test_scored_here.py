"""`rescore --lm NAME=LM` chooses what `score` and `rescore --scores` choose."""

from shlex import split

import numpy as np
import pytest

from lmtools.cli import main
from lmtools.formats import jsonl
from lmtools.types import Hypothesis, NBest

WORDS = {"ok": -0.3, "fine": -0.8, "no": -2.0, "maybe": -1.4}


def make(name, seed, utterances=60):
    """`name`.jsonl, whose first pass knows something of what is right."""
    rng = np.random.default_rng(seed)
    lists = []
    for number in range(utterances):
        texts = dict.fromkeys(
            " ".join(rng.choice([*WORDS], size=rng.integers(2, 7))) for _ in range(12)
        )
        am = {text: rng.normal() - 3.0 * text.split().count("no") for text in texts}
        texts = sorted(am, key=am.get, reverse=True)
        lists.append(
            NBest(f"{name}-{number}", tuple(Hypothesis(t, {"am": am[t]}) for t in texts), "ok fine")
        )
    lists.append(NBest(f"{name}-empty", (), "ok"))
    jsonl.write(lists, f"{name}.jsonl")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{p / np.log(10):.4f}\t{word}\t0\n" for word, p in WORDS.items())
    pairs = "-0.05\tok fine\n-0.6\tno maybe\n"
    (tmp_path / "lm.arpa").write_text(
        f"\\data\\\nngram 1={len(WORDS) + 3}\nngram 2=2\n\n\\1-grams:\n-99\t<s>\t0\n-0.5\t</s>\n"
        f"-3\t<unk>\n{rows}\n\\2-grams:\n{pairs}\n\\end\\\n"
    )
    for seed, name in enumerate(("dev", "test")):
        make(name, seed)
        call(f"score --nbest {name}.jsonl --lm lm.arpa --out {name}.scores --cache none")
    call("tune --nbest dev.jsonl --scores lm2=dev.scores --fix lm2=1 --out w.json")
    call("rescore --nbest test.jsonl --scores lm2=test.scores --weights w.json --out full.txt")
    return tmp_path


def call(line):
    assert main(split(line)) == 0


HERE = "rescore --nbest test.jsonl --lm lm2=lm.arpa --weights w.json --out here.txt --cache none"


@pytest.mark.parametrize("name, folds", [("lm2", ""), ("lm2/token", ""), ("lm2", "--folds 3")])
def test_gives_the_bytes_of_a_file_of_scores(here, capsys, name, folds):
    fix = "" if folds else f"--fix {name}=1"
    call(f"tune --nbest dev.jsonl --scores {name}=dev.scores {fix} {folds} --out w.json")
    for lists in ("test", "dev"):
        line = f"rescore --nbest {lists}.jsonl --scores {name}={lists}.scores --weights w.json"
        call(f"{line} --out full.txt --nbest-out full.jsonl")
        call(
            HERE.replace("test.", f"{lists}.").replace("lm2=", f"{name}=")
            + " --nbest-out here.jsonl"
        )
        for form in ("txt", "jsonl"):
            assert (here / f"here.{form}").read_bytes() == (here / f"full.{form}").read_bytes()


@pytest.mark.parametrize(
    "old, new, told",
    [
        ("lm2=lm.arpa", "lm.arpa", "--lm lm.arpa: not NAME=LM"),
        ("lm2=", "other=", "no feature lm2"),
        ("--cache none", "--scores lm2=test.scores", "--scores has a column of this name"),
        ("lm.arpa", "lm.arpa,oov_penalty=3", "not of what w.json was tuned on as 'lm2'"),
        ("--cache none", "--margin inf", "leave it out: --lm scores all hypotheses"),
    ],
)
def test_what_does_not_go_together_is_told(here, capsys, old, new, told):
    try:
        assert main(split(HERE.replace(old, new))) == 1
    except SystemExit as stop:
        assert stop.code == 2
    assert told in capsys.readouterr().err and not (here / "here.txt").exists()
