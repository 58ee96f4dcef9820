"""egs/librispeech/local/sampling.sh from end to end, on a small cut of the mini corpus with tiny
models.
"""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from lmtools.formats import scores

REPOSITORY = Path(__file__).parents[2]
TINY = "arch.dim=16 arch.units=24 batch.sentences=32 batch.tokens=null optim.warmup=5 steps=30"
MODELS = ("--lstm", "softmax bce-mcs-unigram", "--unnormalised", "bce-mcs-unigram bce-is")
MODELS += ("--causal", "none", "--tta", "none")
LATTICE = ("--lattices", "lstm-bce-mcs-unigram lstm-bce-is", "--lattice-opts=--tokens 2 --nj 1")
SMALL = shlex.split("--mini small --depth 4 --order 2 --samples 50 --nj 1")
OPTIONS = (*SMALL, "--train-opts", TINY, *MODELS, *LATTICE)
LMS = ("lstm-softmax", "lstm-bce-mcs-unigram")
RAW = "lstm-bce-mcs-unigram-unnormalised"


def sampling(home: Path, env: dict[str, str], *args, status=0) -> subprocess.CompletedProcess:
    """Run it to its end and check its exit status."""
    command = [str(home / "local/sampling.sh"), *map(str, args)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, (
        f"{done.args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    )
    return done


@pytest.fixture(scope="module")
def whole(librispeech):
    """The recipe after an uninterrupted run."""
    recipe = librispeech("sampling")
    recipe.done = sampling(recipe.home, recipe.env, *OPTIONS)
    return recipe


def test_all_systems(whole):
    exp = whole.home / "exp/sampling"
    made = {path.relative_to(exp).as_posix() for path in exp.rglob("*") if path.is_file()}
    columns = [*LMS, RAW]
    assert {
        f"score/{name}/{part}.scores" for name in ("ngram", *columns) for part in ("dev", "test")
    } <= made
    alone = {"first-pass", "ngram", *columns, *(f"{name}+ngram" for name in columns)}
    lattices = {f"lattice-{LMS[1]}+ngram", f"lattice-{RAW}+ngram"}
    assert {path.name for path in (exp / "tune").iterdir()} == alone | lattices
    assert {f"rescore/{system}/test.txt" for system in alone | lattices} <= made
    assert not [name for name in made if ".tmp" in name]
    assert "bench/speed.json" not in made


def test_settings(whole):
    exp = whole.home / "exp/sampling"
    settings = {name: yaml.safe_load((exp / f"lm/{name}/config.yaml").read_text()) for name in LMS}
    found = {
        name: (tree["model"], tree["criterion"], tree["output"].get("noise"))
        for name, tree in settings.items()
    }
    assert found == {
        "lstm-softmax": ("lstm", "softmax", None),
        "lstm-bce-mcs-unigram": ("lstm", "bce-mcs", "unigram"),
    }
    assert settings["lstm-bce-mcs-unigram"]["output"]["samples"] == 50
    words = [line.split("\t") for line in (exp / "subword/vocab.txt").read_text().splitlines()]
    assert (
        len(words) > 100
        and {int(count) for _, count in words} >= {2, 3}
        and min(int(count) for _, count in words) == 2
    )


def test_unnormalised_scores_differ_and_say_so(whole):
    exp = whole.home / "exp/sampling"
    full, raw = (scores.read(exp / f"score/{name}/test.scores") for name in (LMS[1], RAW))
    assert raw.signature["normalise"] == "none" and "normalise" not in full.signature
    values = [
        (a, b)
        for utt in full.log_prob
        for a, b in zip(full.log_prob[utt], raw.log_prob[utt], strict=True)
    ]
    assert all(abs(a - b) > 1e-3 for a, b in values)
    lattices = [
        json.loads((exp / f"lattice/{name}+ngram/test.jsonl").read_text().splitlines()[0])
        for name in (LMS[1], RAW)
    ]
    columns = [{name for hyp in lattice["hyps"] for name in hyp["scores"]} for lattice in lattices]
    assert LMS[1] in columns[0] - columns[1] and RAW in columns[1] - columns[0]


def test_report(whole):
    text = (whole.home / "exp/sampling/report/RESULTS.md").read_text()
    section = text.partition("Output layers and training criteria")[2]
    assert section and "unnormalised" in section


def test_later_stages_and_skipping(whole):
    again = sampling(whole.home, whole.env, *OPTIONS, "--skip-done", "--stage", 3)
    assert (
        again.stdout.count("is done already: skipped") == 4
        and "changed" not in again.stdout + again.stderr
    )
    (whole.home / "conf/word/lstm.yaml").write_text(
        (whole.home / "conf/word/lstm.yaml").read_text() + "# a comment\n"
    )
    stale = sampling(whole.home, whole.env, *OPTIONS, "--stop-stage", 0)
    assert "warning: conf changed since stage 3 read it" in stale.stderr


def test_help_and_wrong_usage(librispeech):
    recipe = librispeech("usage")
    text = sampling(recipe.home, recipe.env, "--help").stdout
    assert (
        text.startswith("Training criteria of word LMs")
        and re.search(r"^  --lstm", text, re.MULTILINE)
        and "  3  train LMs\n" in text
    )
    assert not (recipe.home / "exp").exists()
    assert (
        "unknown option --depht; did you mean --depth?"
        in sampling(recipe.home, recipe.env, "--depht", 4, status=2).stderr
    )
    assert (
        "it takes mini, full or swbd"
        in sampling(recipe.home, recipe.env, "--corpus", "wsj", status=2).stderr
    )
    swbd = shlex.split("--corpus swbd --ldc-dir x --expdir exp/swbd")
    done = sampling(recipe.home, recipe.env, *swbd, status=2)
    assert "--corpus swbd rescores N-best lists of your recogniser" in done.stderr
    settings = {
        path.stem: yaml.safe_load(path.read_text())
        for path in (recipe.home / "exp/swbd/conf").glob("*.yaml")
    }
    assert len(settings) == 14 and settings["lstm-ce-is"]["output"] == {
        "noise": "log-uniform",
        "samples": 8192,
    }
    bases = {(recipe.home / "exp/swbd/conf" / tree["base"]).resolve() for tree in settings.values()}
    assert bases == {REPOSITORY / "conf/lstm-sgd.yaml"}
    sampling(recipe.home, recipe.env, *swbd, "--lstm", "ce-is-printed ce-nce-paper", status=2)
    for name, criterion, more in (
        ("lstm-ce-is-printed", "ce-is", {"target_in_sum": False}),
        ("lstm-ce-nce-paper", "ce-nce-paper", {}),
    ):
        tree = yaml.safe_load((recipe.home / f"exp/swbd/conf/{name}.yaml").read_text())
        assert tree["criterion"] == criterion
        assert tree["output"] == {"noise": "log-uniform", "samples": 8192, **more}
