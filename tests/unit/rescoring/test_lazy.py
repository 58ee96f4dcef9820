"""Lazy rescoring chooses what full rescoring chooses, with fewer scores."""

import json
from shlex import split

import numpy as np
import pytest

from lmtools.cli import main
from lmtools.formats import jsonl
from lmtools.rescoring.lazy import LAZY, needed_margins, read_bound, score_lazily
from lmtools.rescoring.weights import Weights
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


LAZILY = "rescore --nbest test.jsonl --lm lm2=lm.arpa --weights w.json --out lazy.txt --cache none"


def test_an_infinite_margin_gives_the_bytes_of_full_rescoring(here, capsys):
    call(f"{LAZILY} --margin inf")
    assert (here / "lazy.txt").read_bytes() == (here / "full.txt").read_bytes()
    assert "(100.0%)" in capsys.readouterr().err


def test_the_learnt_margin_scores_less_and_keeps_the_winners(here, capsys):
    bound = read_bound(Weights.load("w.json"), "lm2", "w.json")
    assert bound.changed == 0 and bound.scored < 0.8 and bound.expected == 1 / 62
    capsys.readouterr()
    call(LAZILY)
    told = capsys.readouterr().err
    count, total = next(
        (int(line.split()[2]), int(line.split()[4]))
        for line in told.splitlines()
        if line.startswith("lm2: scored")
    )
    assert count < 0.8 * total
    assert "expected to change" in told and "\nWER " in told
    lazy, full = ((here / f"{one}.txt").read_text().splitlines() for one in ("lazy", "full"))
    assert len({*lazy} - {*full}) <= 2


def test_a_mean_is_scored_lazily_too(here):
    call("tune --nbest dev.jsonl --scores lm2/token=dev.scores --fix lm2/token=5 --out w.json")
    line = "rescore --nbest test.jsonl --scores lm2/token=test.scores --weights w.json"
    call(f"{line} --out full.txt")
    call(f"{LAZILY.replace('lm2=', 'lm2/token=')} --margin inf")
    assert (here / "lazy.txt").read_bytes() == (here / "full.txt").read_bytes()


def without_bound(tree):
    del tree["search"][LAZY]


def damaged(tree):
    tree["search"][LAZY]["lm2"]["margin"] = "wide"


def other_features(tree):
    tree["search"][LAZY]["lm2"]["slopes"].pop("am")


@pytest.mark.parametrize(
    "change, told",
    [
        (without_bound, "w.json: no bound for 'lm2'"),
        (damaged, "the bound of 'lm2': 'margin' is 'wide'"),
        (other_features, "its bound is of"),
    ],
)
def test_weights_without_a_fitting_bound(here, capsys, change, told):
    tree = json.loads((here / "w.json").read_text())
    change(tree)
    (here / "w.json").write_text(json.dumps(tree))
    assert main(split(LAZILY)) == 1
    error = capsys.readouterr().err
    assert told in error and "tune again" in error and not (here / "lazy.txt").exists()
    call(f"{LAZILY} --margin inf")


@pytest.mark.parametrize(
    "old, new, told",
    [
        ("lm2=lm.arpa", "lm.arpa", "--lm lm.arpa: not NAME=LM"),
        ("lm2=", "other=", "no weight for 'other'"),
        ("--cache none", "--nbest-out new.jsonl", "--nbest-out: --lm leaves hypotheses"),
        ("--cache none", "--scores lm2=test.scores", "no weight for lm2"),
        ("lm.arpa", "lm.arpa,oov_penalty=3", "not of what w.json was tuned on as 'lm2'"),
    ],
)
def test_what_does_not_go_together_is_told(here, capsys, old, new, told):
    assert main(split(LAZILY.replace(old, new))) == 1
    assert told in capsys.readouterr().err


def test_cross_validated_weights_serve_other_lists_only(here, capsys):
    call("tune --nbest dev.jsonl --scores lm2=dev.scores --folds 3 --out w.json")
    call("rescore --nbest test.jsonl --scores lm2=test.scores --weights w.json --out full.txt")
    call(f"{LAZILY} --margin inf")
    assert (here / "lazy.txt").read_bytes() == (here / "full.txt").read_bytes()
    call(LAZILY)
    assert main(split(LAZILY.replace("test.jsonl", "dev.jsonl"))) == 1
    assert "61 of the utterances are of a fold" in capsys.readouterr().err


def test_a_list_is_done_when_none_left_may_win():
    """By hand: the second list's last hypothesis cannot catch up within the margin."""
    rest = np.array([[0.0, -1.0, -2.0], [0.0, -1.0, -9.0]])
    column = np.array([[0.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
    valid = np.ones((2, 3), bool)
    assert needed_margins(rest, rest + column, valid).tolist() == [1.0, -np.inf]
    asked = []

    def score(rows, places):
        asked.append(list(zip(rows.tolist(), places.tolist(), strict=True)))
        return column[rows, places]

    found = score_lazily(rest, rest, 1.0, valid, 1.5, score)
    assert asked == [[(0, 0), (1, 0)], [(0, 1), (1, 1)]]
    assert found.scored.tolist() == [[True, True, False]] * 2
