"""Systems of a YAML file: which there are, and that one call tunes and applies them as many do."""

import json
from pathlib import Path

import numpy as np
import pytest

from lmtools.cli import main
from lmtools.errors import UserError
from lmtools.formats import jsonl, scores
from lmtools.rescoring import SystemPlan, Weights, read_systems
from lmtools.types import Hypothesis, NBest, ScoreTable

LIBRISPEECH = "combinations: tta+ngram lost+ngram all\n"


def systems(tmp_path, text, *settings):
    (tmp_path / "s.yaml").write_text(text)
    found = read_systems(tmp_path / "s.yaml", settings)
    assert all(plan.form == "linear" for plan in found.values())
    return {name: plan.columns for name, plan in found.items()}


def test_each_alone_then_combinations(tmp_path):
    found = systems(tmp_path, LIBRISPEECH, "lms=ngram tta", "unnormalised=tta")
    assert list(found.items()) == [
        ("first-pass", ()),
        ("ngram", ("ngram",)),
        ("tta", ("tta",)),
        ("tta+ngram", ("tta", "ngram")),
        ("all", ("ngram", "tta")),
        ("tta-unnormalised", ("tta-unnormalised",)),
        ("tta-unnormalised+ngram", ("tta-unnormalised", "ngram")),
    ]


def test_means_and_what_is_no_lm(tmp_path):
    text = "averages: [mean]\nothers: [mbr]\ncombinations: [tta-mean+mbr, {best: [tta, mbr]}]\n"
    assert systems(tmp_path, text, "lms=tta tta-mean x") == {
        "first-pass": (),
        "mbr": ("mbr",),
        "tta-mean": ("tta-mean",),  # an LM of that name, and not the mean of tta
        "tta-mean-mean": ("tta-mean/token",),
        "x-mean": ("x/token",),
        "tta-mean+mbr": ("tta-mean", "mbr"),
        "best": ("tta", "mbr"),
    }


def test_all_lms_beside_what_is_no_lm(tmp_path):
    text = "combinations: [channel+all, tta+all, {small: [all, mbr]}, {lost: [all, direct]}]\n"
    others = "others=mbr channel"
    found = systems(tmp_path, text, "lms=ngram tta", others)
    assert {name: found[name] for name in ("channel+all", "tta+all", "small")} == {
        "channel+all": ("channel", "ngram", "tta"),
        "tta+all": ("tta", "ngram"),
        "small": ("ngram", "tta", "mbr"),
    }
    assert "lost" not in found
    assert list(systems(tmp_path, text, "lms=", others)) == ["first-pass", "mbr", "channel"]
    named = systems(tmp_path, "combinations: channel+all\n", "lms=all tta", others)
    assert named["channel+all"] == ("channel", "all")  # an LM of that name


def test_forms_and_what_the_first_pass_is(tmp_path):
    text = "averages: sum mean\nforms: [interpolation]\nfirst_pass: am=0.1 lm\ncombinations: all\n"
    (tmp_path / "s.yaml").write_text(text)
    found = read_systems(tmp_path / "s.yaml", ["lms=tta", "others=mbr", "first_pass_mean=norm"])
    assert found == {
        "first-pass": SystemPlan(()),
        "mbr": SystemPlan(("mbr",)),
        "all": SystemPlan(("tta",)),
        "tta-interpolated": SystemPlan(("tta",), "interpolation", {"am": 0.1, "lm": 1.0}),
        "tta-mean-interpolated": SystemPlan(("tta/token",), "interpolation", {"norm": 1.0}),
    }
    both = read_systems(tmp_path / "s.yaml", ["lms=tta", "forms=linear interpolation"])
    assert {"tta", "tta-mean", "tta-interpolated", "tta-mean-interpolated"} < both.keys()
    assert both["tta-mean-interpolated"].first_pass == {"am": 0.1, "lm": 1.0}


def test_settings_take_the_place_of_the_file_s(tmp_path):
    assert list(systems(tmp_path, LIBRISPEECH, "combinations=none")) == ["first-pass"]
    assert list(systems(tmp_path, LIBRISPEECH)) == ["first-pass"]


@pytest.mark.parametrize(
    "text, setting, message",
    [
        ("lm: a\n", "lms=a", "unknown setting 'lm'; did you mean lms?"),
        ("averages: median\n", "lms=a", "averages: 'median' is unknown; known: sum, mean"),
        ("forms: log-linear\n", "lms=a", "forms: 'log-linear' is unknown; known: linear, interp"),
        ("forms: interpolation\n", "first_pass=am=x", "the weight of 'am' is 'x'"),
        ("combinations: [[a, b]]\n", "lms=a", "is neither NAME+NAME nor"),
        ("combinations: [{best: a}]\n", "lms=a", "is neither NAME+NAME nor"),
        ("combinations: [{a/b: [a]}]\n", "lms=a", "a system called 'a/b' has no directory"),
        ("lms: a\n", "lms", "--systems lms: not KEY=WORDS"),
        ("lms: 3\n", "averages=sum", "setting 'lms' is 3"),
    ],
)
def test_refusals(tmp_path, text, setting, message):
    with pytest.raises(UserError) as refusal:
        systems(tmp_path, text, setting)
    assert message in str(refusal.value)


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
    Path("s.yaml").write_text("averages: sum mean\ncombinations: b-mean+a all\n")
    return tmp_path


ALONE = {
    "first-pass": (),
    "a": ("a=a",),
    "a-mean": ("a/token=a",),
    "b": ("b=b",),
    "b-mean": ("b/token=b",),
    "b-mean+a": ("b/token=b", "a=a"),
    "all": ("a=a", "b=b"),
}


@pytest.mark.parametrize("nj", [1, 2])
def test_one_call_writes_what_a_call_for_each_system_does(here, nj):
    options = ("--lengths", "words", "log-words", "--objective", "exact")
    systems = ("--systems", "s.yaml", "lms=a b", "--scores", "{lm}/SET.scores")
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


INTERPOLATED = "averages: sum mean\nforms: linear interpolation\nfirst_pass: am=0.5 words=-0.1\n"


def test_interpolated_systems_are_what_single_calls_give(here):
    """The first pass's length belongs to interpolated systems alone."""
    Path("s.yaml").write_text(INTERPOLATED)
    systems = ("--systems", "s.yaml", "lms=a")
    scores = ("--scores", "{lm}/dev.scores")
    tune = ("tune", "--nbest", "dev.jsonl")
    assert main([*tune, *systems, *scores, "--no-words", "--out", "{system}.json"]) == 0
    fixed = ("--form", "interpolation", "--lengths", "words", "--fix", "am=0.5", "words=-0.1")
    for name, column in (("a-interpolated", "a"), ("a-mean-interpolated", "a/token")):
        single = (*tune, "--scores", f"{column}=a/dev.scores", *fixed, "--out", "w.json")
        assert main([*single]) == 0
        assert Weights.load(f"{name}.json") == Weights.load("w.json")
        assert 0 < Weights.load("w.json").search["lambda"] < 1
    assert list(Weights.load("a.json").features) == ["am", "a"]
    assert list(Weights.load("first-pass.json").features) == ["am"]
    apply = ("rescore", "--nbest", "test.jsonl", "--scores", "{lm}/test.scores", *systems)
    assert main([*apply, "--weights", "{system}.json", "--out", "{system}.txt"]) == 0
    single = ("--scores", "a=a/test.scores", "--weights", "a-interpolated.json", "--out", "t.txt")
    assert main(["rescore", "--nbest", "test.jsonl", *single]) == 0
    assert Path("t.txt").read_bytes() == Path("a-interpolated.txt").read_bytes()


def test_the_first_pass_s_score_is_the_lists_total_or_the_only_one(here, capsys):
    Path("s.yaml").write_text("forms: interpolation\nlms: a\n")
    tune = ("tune", "--systems", "s.yaml", "--scores", "{lm}/dev.scores", "--out", "{system}.json")
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
    Path("s.yaml").write_text("forms: interpolation\nlms: a\nfirst_pass: ac\n")
    assert main([*tune, "--nbest", "dev.jsonl"]) == 1
    assert "dev.jsonl: first_pass: no score 'ac'; it has am" in capsys.readouterr().err


@pytest.mark.parametrize(
    "scores, out, message",
    [
        ("a/dev.scores", "{system}.json", "--scores a/dev.scores: with --systems one path with"),
        ("{lm}/dev.scores", "w.json", "w.json: each system needs a path of its own"),
        ("{lm}/no.scores", "{system}.json", "a/no.scores: "),
    ],
)
def test_paths_that_do_not_fit(here, capsys, scores, out, message):
    call = ("tune", "--nbest", "dev.jsonl", "--systems", "s.yaml", "lms=a", "--scores", scores)
    assert main([*call, "--out", out]) == 1
    assert message in capsys.readouterr().err and not list(here.glob("*.json"))
