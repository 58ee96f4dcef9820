"""egs/librispeech/studies/run_adapt.sh from end to end, and how it splits text."""

import json
import subprocess
import sys

import pytest

TINY = ("--lines", "40", "--vocab-size", "60", "--order", "3", "--nj", "1")
NEURAL = "arch.dim=8 arch.heads=2 arch.ffn=8 arch.layers=1 epochs=1"


@pytest.fixture(scope="module")
def recipe(librispeech):
    """General text is the first 300 lines of mini's, in two files, the domain's the last 200."""
    recipe = librispeech("adapt")
    lines = (recipe.home / "small/train.txt").read_text().splitlines(keepends=True)
    (recipe.home / "books").mkdir()
    (recipe.home / "books/a.txt").write_text("".join(lines[:150]))
    (recipe.home / "books/b.txt").write_text("".join(lines[150:300]))
    (recipe.home / "domain.txt").write_text("".join(lines[300:]))
    return recipe


def run(recipe, *options):
    given = ["--general", "books", "--domain", "domain.txt", "--dev", "small/dev.nbest.jsonl"]
    given += ["--test", "small/test.nbest.jsonl", "--train-opts", NEURAL]
    given += ["--domain-opts", "optim.lr=1e-2", *TINY]
    return recipe(*given, *options, script="studies/run_adapt.sh").stdout


def test_whole(recipe):
    run(recipe)
    exp = recipe.home / "exp/adapt"
    names = {"ngram", "mixed", "neural", "continued", "mixed+continued"}
    names |= {f"{name}+source" for name in names - {"neural"}}
    systems = {path.parent.name for path in exp.glob("40/rescore/*/test.txt")}
    assert systems == names | {"first-pass", "ngram-general", "neural-general", "source"}
    # what was subtracted: no other column's weight may be negative
    for path in exp.glob("40/tune/*/weights.json"):
        weights = json.loads(path.read_text())["features"]
        assert all(weights[name] >= 0 for name in weights if name in names)
    rows = (exp / "40/lm/continued/metrics.jsonl").read_text().splitlines()
    assert any("also" in json.loads(row) for row in rows)
    assert "n-gram, mixed ± source" in (exp / "40/report/RESULTS.md").read_text()
    curve = (exp / "report/curve.md").read_text()
    assert curve.count("| n-gram, mixed  ") == 3 and curve.count("| lines of the domain ") == 4
    assert (exp / "report/curve.png").read_bytes().startswith(b"\x89PNG")
    # a neural LM that is there already is gone on from
    place = "general/neural-general"
    run(recipe, "--general-lm", exp / place, "--expdir", "exp/given", "--stop-stage", "3")
    given = recipe.home / "exp/given"
    assert not (given / "bin/train-general.bin").exists()
    for name in (place, "40/lm/continued"):
        model = f"{name}/model.safetensors"
        assert (given / model).read_bytes() == (exp / model).read_bytes()


def split(recipe, *words):
    script = [sys.executable, recipe.home / "studies/local/adapt_text.py", *words]
    return subprocess.run(script, env=recipe.env, capture_output=True, text=True)


def read_parts(folder):
    return {path.stem: path.read_text().splitlines() for path in folder.iterdir()}


def test_domain(recipe, tmp_path):
    place = recipe.home / "domain.txt"
    assert split(recipe, "domain", tmp_path, place, "all", "50").returncode == 0
    part, whole = read_parts(tmp_path), place.read_text().splitlines()
    assert len(part["valid-50"]) == 5 and len(part["train-50"]) == 45
    assert sorted(part["train-all"] + part["valid-all"]) == sorted(whole)
    assert set(part["valid-50"]) <= set(part["valid-all"])
    assert part["train-50"] == part["train-all"][:45]


def test_general(recipe, tmp_path):
    assert split(recipe, "general", tmp_path, recipe.home / "books").returncode == 0
    part = read_parts(tmp_path)
    lines = [
        line
        for name in "ab"
        for line in (recipe.home / f"books/{name}.txt").read_text().splitlines()
    ]
    assert part["valid-general"] == lines[9::20] and part["test-general"] == lines[19::20]
    assert sum(map(len, part.values())) == len(lines)


@pytest.mark.parametrize("size", ["0", "9", "1000", "x", "-5"])
def test_bad_size(recipe, tmp_path, size):
    done = split(recipe, "domain", tmp_path, recipe.home / "domain.txt", size)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert f"--lines {size}: " in done.stderr and not list(tmp_path.iterdir())


def test_no_text(recipe, tmp_path):
    done = split(recipe, "general", tmp_path / "out", tmp_path)
    assert done.returncode == 1 and "put the text there" in done.stderr
    (tmp_path / "few.txt").write_text("a b\n" * 19)
    done = split(recipe, "general", tmp_path / "out", tmp_path)
    assert done.returncode == 1 and "20 lines are the least" in done.stderr
    assert not list((tmp_path / "out").glob("*.txt"))
