"""What the benchmark counts and writes (never how fast it was)."""

import json

import pytest

from lmtools.bench.score import random_family
from lmtools.cli import main

ARCH = {"layers": 2, "dim": 16, "heads": 2, "ffn": 32, "positions": 64}


def test_rows_cover_models_tasks_and_lengths(tmp_path, trained, capsys):
    out = tmp_path / "speed.json"
    lms = [word for name, path in trained.items() for word in ("--lm", f"{name}={path}")]
    assert (
        main(["bench", "score", *lms, "--length", "2", "5", "--repeats", "2", "--out", str(out)])
        == 0
    )
    figures = json.loads(out.read_text())
    keys = {(row["lm"], row["task"], row["words"]) for row in figures["rows"]}
    assert keys == {
        (lm, t, w)
        for lm in (*trained, "masked-shared")
        for t in ("hidden", "rerank")
        for w in (2, 5)
    }
    assert all(
        len(row["seconds"]) == 2
        and min(row["seconds"]) <= row["seconds_median"] <= max(row["seconds"])
        for row in figures["rows"]
    )
    assert figures["batched"].keys() == {"tta", "causal"} and figures["threads"] == 1
    assert "5 words rerank" in capsys.readouterr().out


def test_bench_refuses_a_model_without_name(capsys):
    assert main(["bench", "score", "--lm", "exp/lm/tta"]) == 1
    assert "give a name" in capsys.readouterr().err


@pytest.mark.parametrize("family", ["tta", "masked", "causal"])
def test_random_models_score(family):
    scorer = random_family(family, ARCH, 50, "cpu", "float32")
    assert scorer.log_probs([(7, 8, 9)])[0].shape == (4,)
