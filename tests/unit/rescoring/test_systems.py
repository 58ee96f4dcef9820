"""Systems of an experiment's file: one call tunes and applies them as many do."""

import json
from pathlib import Path
from shlex import split

import numpy as np
import pytest

from lmtools.cli import main
from lmtools.formats import jsonl, scores
from lmtools.rescoring.weights import Weights
from lmtools.types import Hypothesis, NBest, ScoreTable


def make(part: str, seed: int) -> None:
    """Lists of 20 utterances, and scores of two LMs that know better than the first pass."""
    rng = np.random.default_rng(seed)
    nbests = []
    for number in range(20):
        texts = [" ".join(["ok"] * (4 - n) + ["no"] * n) for n in rng.integers(0, 4, size=5)]
        hyps = [Hypothesis(text, {"am": float(rng.normal())}) for text in texts]
        nbests.append(NBest(f"u{number}", tuple(hyps), "ok ok ok ok"))
    for lm in ("a", "b"):
        values, counts = {}, {}
        for nbest in nbests:
            words = [hyp.text.split() for hyp in nbest.hyps]
            values[nbest.utt] = rng.normal(size=5) - [row.count("no") for row in words]
            counts[nbest.utt] = rng.integers(4, 9, size=5)
        Path(lm).mkdir(exist_ok=True)
        signature = {"lm": lm, "model": lm, "vocabulary": "v", "precision": "float32"}
        scores.write(ScoreTable(values, counts, signature), nbests, f"{lm}/{part}.scores")
    jsonl.write(nbests, f"{part}.jsonl")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make("dev", 1)
    make("test", 2)
    return tmp_path


ALONE = {
    "first-pass": (),
    "a": ("a=a",),
    "a-mean": ("a/token=a",),
    "b-mean+a": ("b/token=b", "a=a"),
    "all": ("a=a", "b=b"),
}


def experiment(**systems) -> None:
    """Write e.yaml with these systems of the columns a and b."""
    systems = {name.replace("_", "-"): system for name, system in systems.items()}
    Path("e.yaml").write_text(json.dumps({"columns": {"a": {}, "b": {}}, "systems": systems}))


@pytest.mark.parametrize("nj", [1, 2])
def test_one_call_writes_what_a_call_for_each_system_does(here, nj):
    options = ("--set", "lengths=words,log-words", "--set", "objective=exact")
    experiment(**{n: [one.partition("=")[0] for one in ones] for n, ones in ALONE.items()})
    systems = ("--experiment", "e.yaml", "--scores", "{column}/SET.scores")
    for part, verb in (("dev", "tune"), ("test", "rescore")):
        lists = (verb, "--nbest", f"{part}.jsonl")
        with_all = (*lists, *(word.replace("SET", part) for word in systems))
        weights, text = "one/{system}/w.json", ("--out", "one/{system}/t")
        more = (*options, "--nj", str(nj), "--out", weights)
        assert main([*with_all, *(more if verb == "tune" else ("--weights", weights, *text))]) == 0
        for name, columns in ALONE.items():
            alone = [*lists, "--scores", *(f"{column}/{part}.scores" for column in columns)]
            alone = alone if columns else alone[:-1]
            weights, text = f"each/{name}/w.json", ("--out", f"each/{name}/t")
            more = (*options, "--out", weights)
            assert main([*alone, *(more if verb == "tune" else ("--weights", weights, *text))]) == 0
    found, expected = (
        {path.relative_to(folder): path.read_bytes() for path in Path(folder).rglob("*.*")}
        | {path.relative_to(folder): path.read_bytes() for path in Path(folder).rglob("t")}
        for folder in ("one", "each")
    )
    assert found == expected and len(found) == 2 * len(ALONE)


def test_interpolated_systems_are_what_single_calls_give(here):
    """The first pass's length belongs to interpolated systems alone."""
    form = {"form": "interpolation", "first_pass": {"am": 0.5, "words": -0.1}}
    of_sum, of_mean = ({"columns": [name], **form} for name in ("a", "a/token"))
    experiment(first_pass=[], a=["a"], a_interpolated=of_sum, a_mean_interpolated=of_mean)
    systems = ("--experiment", "e.yaml")
    scores = ("--scores", "{column}/dev.scores")
    tune = ("tune", "--nbest", "dev.jsonl")
    assert main([*tune, *systems, *scores, "--set", "lengths=", "--out", "{system}.json"]) == 0
    fixed = split("--set form=interpolation lengths=words --fix am=0.5 words=-0.1")
    for name, column in (("a-interpolated", "a"), ("a-mean-interpolated", "a/token")):
        single = (*tune, "--scores", f"{column}=a/dev.scores", *fixed, "--out", "w.json")
        assert main([*single]) == 0
        assert Weights.load(f"{name}.json") == Weights.load("w.json")
        assert 0 < Weights.load("w.json").search["lambda"] < 1
    assert list(Weights.load("a.json").features) == ["am", "a"]
    assert list(Weights.load("first-pass.json").features) == ["am"]
    apply = ("rescore", "--nbest", "test.jsonl", "--scores", "{column}/test.scores", *systems)
    assert main([*apply, "--weights", "{system}.json", "--out", "{system}.txt"]) == 0
    single = ("--scores", "a=a/test.scores", "--weights", "a-interpolated.json", "--out", "t.txt")
    assert main(["rescore", "--nbest", "test.jsonl", *single]) == 0
    assert Path("t.txt").read_bytes() == Path("a-interpolated.txt").read_bytes()


def test_the_first_pass_s_score_is_the_lists_total_or_the_only_one(here, capsys):
    experiment(a_interpolated={"columns": ["a"], "form": "interpolation"})
    tune = ("tune", *split("--experiment e.yaml --scores {column}/dev.scores --out {system}.json"))
    assert main([*tune, "--nbest", "dev.jsonl"]) == 0
    weights = Weights.load("a-interpolated.json")
    part = weights.search["lambda"]
    assert weights.features == {"am": 1 - part, "a": part}
    lists = [json.loads(line) for line in Path("dev.jsonl").read_text().splitlines()]
    for name in ("lm", "total"):
        for row in lists:
            for hyp in row["hyps"]:
                hyp["scores"][name] = -1.0 * len(hyp["text"]) + hyp["scores"]["am"]
        Path(f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in lists))
    assert main([*tune, "--nbest", "lm.jsonl"]) == 1
    assert "lm.jsonl: which of am, lm is the first pass's score" in capsys.readouterr().err
    assert main([*tune, "--nbest", "total.jsonl"]) == 0
    weights = Weights.load("a-interpolated.json")
    assert weights.features["am"] == weights.features["lm"] == 0 < weights.features["total"]
    form = {"form": "interpolation", "first_pass": {"ac": 1}}
    experiment(a_interpolated={"columns": ["a"], **form})
    assert main([*tune, "--nbest", "dev.jsonl"]) == 1
    assert "dev.jsonl: first_pass: no score 'ac'; it has am" in capsys.readouterr().err


@pytest.mark.parametrize(
    "scores, out, message",
    [
        ("a/dev.scores", "{system}.json", "a/dev.scores: each column needs a path of its own; "),
        ("{column}/dev.scores", "w.json", "w.json: each system needs a path of its own; write"),
        ("{column}/no.scores", "{system}.json", "a/no.scores: "),
    ],
)
def test_paths_that_do_not_fit(here, capsys, scores, out, message):
    experiment(a=["a"])
    call = ("tune", "--nbest", "dev.jsonl", "--experiment", "e.yaml", "--scores", scores)
    assert main([*call, "--out", out]) == 1
    assert message in capsys.readouterr().err and not list(here.glob("*.json"))
