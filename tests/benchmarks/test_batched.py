"""What is timed in batches, the steps that a measured rate gives, and a training within a time."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from measures.batched import TASKS, compare, forms, masked_copies
from measures.rate import count_steps, slowest
from measures.represent import embed_one_by_one
from measures.score import FAMILIES, random_family, random_sentences
from scoring import CPU

WITHIN = Path(__file__).parents[2] / "benchmarks/gpu/within.py"
ARCH = {"layers": 2, "dim": 16, "heads": 2, "ffn": 32, "positions": 64}
RATE = {
    "rows": [
        {"together": 3, "batch": 10, "each": [{"model": "tta", "tokens_per_second": rate}
        for rate in (400.0, 200.0)]},
    ]
}  # fmt: skip


@pytest.fixture(scope="module")
def scorers():
    return {family: random_family(family, ARCH, 50, CPU) for family in FAMILIES}


def test_copies_of_many_sentences_give_what_each_gives_alone(scorers):
    masked, some = scorers["masked"], random_sentences(7, 5, 50)
    scores = masked_copies(masked, some, "rerank").numpy()
    np.testing.assert_allclose(scores, np.stack(masked.log_probs(some)), atol=1e-5)
    alone = torch.stack([embed_one_by_one(masked, sentence) for sentence in some])
    torch.testing.assert_close(masked_copies(masked, some, "represent"), alone)


def test_every_form_gives_the_vectors_and_scores_of_the_model(scorers):
    some = random_sentences(7, 4, 50)
    for task in TASKS:
        known = dict(forms(scorers, task, some[0]))
        assert list(known) == ["tta", "masked", "masked-shared", "causal"]
        assert known["masked"].cost == (7 + (task == "rerank")) * 9 and known["tta"].cost == 9
        shared, copies = (np.stack(known[name].do(some)) for name in ("masked-shared", "masked"))
        np.testing.assert_allclose(shared, copies, atol=1e-5)


def test_ratios_are_of_the_best_size_of_batch():
    rows = [
        {"task": "rerank", "words": 9, "lm": lm, "sentences_per_second": rate}
        for lm, rate in (("tta", 4.0), ("tta", 12.0), ("masked", 3.0), ("masked", 2.0))
    ]
    (row,) = compare(rows)
    assert row["times"] == {"masked": 4.0} and row["rates"] == {"tta": 12.0, "masked": 3.0}


def test_steps_are_those_of_the_slowest_with_a_tenth_to_spare():
    assert slowest(RATE, 3, 10) == 200.0 and count_steps(RATE, 3, 10, 50.0) == 900


@pytest.mark.parametrize(("loss", "settings"), [(5.0, ["a=1"]), (7.0, ["a=1", "lr=2"])])
def test_a_training_that_learns_nothing_starts_again(tmp_path, loss, settings):
    """A stand-in for lmtools logs a loss; at the second start it ends."""
    program = tmp_path / "lmtools"
    program.write_text(
        f"#!{sys.executable}\nimport json, pathlib, sys, time\n"
        f"out = pathlib.Path({str(tmp_path)!r})\n"
        "lr = 'lr=2' in sys.argv\n(out / 'm').mkdir(exist_ok=True)\n"
        f"row = {{'step': 5, 'train_loss': 1.0 if lr else {loss}}}\n"
        "(out / 'm/metrics.jsonl').write_text(json.dumps(row) + '\\n')\n"
        f"time.sleep(0.1 if lr or {loss} < 6 else 60)\n"
    )
    program.chmod(0o755)
    (tmp_path / "rate.json").write_text(json.dumps(RATE))
    command = [sys.executable, WITHIN, "train", tmp_path / "rate.json", "10", "100"]
    command += ["--again", "lr=2", "--check", "5", "--most", "6", "--out", tmp_path / "m"]
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run([*command, "--", "a=1"], env=path, check=True)
    done = json.loads((tmp_path / "m.done").read_text())
    assert done["settings"] == settings and 1500 < done["steps"] <= 1800
