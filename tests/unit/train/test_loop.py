"""Training: exact resume after SIGKILL and SIGTERM, early stopping, refusal of bad losses, nothing overwritten."""

import dataclasses
import json
import os
import signal
import subprocess
import sys

import pytest
import torch
import yaml
from toys import OBJECTIVE, settings

from lmtools.checkpoint import load_metadata, load_model, load_tensors
from lmtools.errors import UserError
from lmtools.settings import Batch, Optim
from lmtools.train import Stopped, train
from lmtools.train.loop import Training


def weights(directory) -> bytes:
    return (directory / "model.safetensors").read_bytes() + (directory / "checkpoint.safetensors").read_bytes()


def tensors(directory):
    """All tensors of the best and the last checkpoint, as bytes (metadata holds times)."""
    files = ("model.safetensors", "checkpoint.safetensors")
    return {(f, n): t.numpy().tobytes() for f in files for n, t in load_tensors(directory / f).items()}


@pytest.mark.parametrize("model", OBJECTIVE)
def test_training_learns(trained, model):
    lines = [json.loads(line) for line in (trained[model] / "metrics.jsonl").read_text().splitlines()]
    losses = [line["valid_loss"] for line in lines if "valid_loss" in line]
    assert losses[-1] < losses[0]
    assert load_metadata(trained[model] / "checkpoint.safetensors")["progress"]["best"] == pytest.approx(min(losses), abs=1e-6)


COMMAND = """
import os, sys, torch, torch._dynamo  # which optimisers import
sys.path.insert(0, {tests!r})
torch.set_num_threads(1)
from toys import settings
from lmtools.train import loop
step = loop.Training.step
def run(out, kill_at, sig):
    def killing(self, indices):
        if self.progress.step == kill_at:
            os.kill(os.getpid(), sig)
        return step(self, indices)
    loop.Training.step = killing
    try:
        loop.train(settings({model!r}), {train!r}, {valid!r}, out, "cpu")
    except loop.Stopped:
        os._exit(143)
    os._exit(0)
ends = []
for out, kill_at, sig in {runs!r}:
    child = os.fork()
    if not child:
        run(out, kill_at, sig)
    ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(ends)
"""


def test_killed_at_any_step_and_resumed_gives_the_same_bytes(tiny, tmp_path):
    """SIGKILL before, between and after checkpoints, and SIGTERM, in one chain of runs against one that never stopped.

    Each is a process of its own, forked by one that has imported all that takes seconds.
    """
    tests = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    kills = ((3, signal.SIGKILL), (7, signal.SIGKILL), (9, signal.SIGTERM), (11, signal.SIGKILL))
    whole, pieces = str(tmp_path / "whole"), str(tmp_path / "pieces")
    runs = [(whole, -1, 0), *((pieces, step, int(sig)) for step, sig in kills), (pieces, -1, 0)]
    corpora = {part: str(tiny / f"{part}.bin") for part in ("train", "valid")}
    command = [sys.executable, "-c", COMMAND.format(tests=tests, model="causal", runs=runs, **corpora)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [0, -signal.SIGKILL, -signal.SIGKILL, 143, -signal.SIGKILL, 0]
    assert tensors(tmp_path / "pieces") == tensors(tmp_path / "whole")
    logs = [(tmp_path / name / "metrics.jsonl").read_text().splitlines() for name in ("whole", "pieces")]
    whole, pieces = ([line for line in map(json.loads, log) if "valid_loss" in line] for log in logs)
    assert pieces == whole


ADAPTIVE = {"criterion": "adaptive", "output": {"cutoffs": [6, 16], "divide": 2.0}}
RARE = {"optim": Optim(name="nag", lr=0.1, warmup=2, momentum=0.9, clip=0.1, decay="plateau"), **ADAPTIVE}
FAMILIES = {
    "gcnn": {"model": "gcnn", "arch": {"dim": 8, "blocks": ["[3, 12]", "[1, 6; 3, 6; 1, 12]"], "dropout": 0.1}, **RARE},
    "elmo": {
        "model": "elmo", "objective": "two-way", "optim": Optim(name="adagrad", lr=0.1, warmup=2),
        "arch": {"piece_dim": 4, "filters": [[1, 4], [2, 6]], "highway": 1, "dim": 8, "units": 12, "layers": 2, "dropout": 0.1},
    },
    "lstm": {"model": "lstm", "arch": {"layers": 2, "dim": 8, "units": 12, "projection": 6, "dropout": 0.1}},
    "tied": {"model": "lstm", "arch": {"layers": 2, "dim": 16, "units": 24, "tied": True, "dropout": 0.1}},
    "streams": {"model": "lstm", "arch": {"layers": 2, "dim": 8, "units": 12}, "batch": Batch(streams=30, unroll=5), **RARE},
    "sampled": {
        "model": "lstm", "arch": {"layers": 1, "dim": 8, "units": 12}, "criterion": "bce-nce", "output": {"samples": 12},
        "optim": Optim(name="adagrad", lr=0.1, warmup=2),
    },
    "tta": {"model": "tta", "objective": "autoencoding"},
    "masked": {"model": "masked", "objective": "masked"},
    "plateau": {"optim": Optim(name="sgd", lr=9.0, warmup=2, clip=0.0, decay="plateau"), "valid_every": 1},
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_stopped_at_any_step_and_resumed_gives_the_same_bytes(spelled, tmp_path, monkeypatch, family):
    """Within a process: stopped before and after a checkpoint, and by SIGTERM in the second epoch."""
    some = dataclasses.replace(settings("causal", epochs=2, steps=17), **FAMILIES[family])
    corpora = [spelled / f"{part}{'-spelled' if family == 'elmo' else ''}.bin" for part in ("train", "valid")]
    whole = train(some, *corpora, tmp_path / "whole", "cpu")
    step, stops = Training.step, [3, 9, 14]

    def interrupted(self, batch):
        if stops and self.progress.step == stops[0]:
            if stops.pop(0) != 14:
                raise KeyboardInterrupt
            os.kill(os.getpid(), signal.SIGTERM)
        return step(self, batch)

    monkeypatch.setattr(Training, "step", interrupted)
    for stopped in (KeyboardInterrupt, KeyboardInterrupt, Stopped):
        with pytest.raises(stopped):
            train(some, *corpora, tmp_path / "parts", "cpu")
    assert load_metadata(tmp_path / "parts/checkpoint.safetensors")["progress"]["step"] == 15
    parts = train(some, *corpora, tmp_path / "parts", "cpu")
    assert tensors(tmp_path / "parts") == tensors(tmp_path / "whole")
    assert (parts.step, parts.best, parts.tokens, parts.shrunk) == (whole.step, whole.best, whole.tokens, whole.shrunk)
    carried = [name for name in load_tensors(tmp_path / "whole/checkpoint.safetensors") if name.endswith((".0", ".3"))]
    assert len(carried) == (2 if family == "streams" else 0)


def test_a_plateau_lowers_the_learning_rate(tiny, tmp_path):
    """After each validation that is not the best so far, until it is below the least."""
    optim = Optim(name="sgd", lr=4.0, warmup=0, clip=0.0, decay="plateau", shrink=0.5, min_lr=0.1)
    some = settings("causal", optim=optim, valid_every=2, log_every=2, checkpoint_every=1000, epochs=50)
    progress = train(some, tiny / "train.bin", tiny / "valid.bin", tmp_path / "m", "cpu")
    lines = [json.loads(line) for line in (tmp_path / "m/metrics.jsonl").read_text().splitlines()]
    best, rate = float("inf"), 4.0
    for trained, validated in zip(lines[::2], lines[1::2], strict=True):
        assert trained["lr"] == pytest.approx(rate)
        best, rate = (validated["valid_loss"], rate) if validated["valid_loss"] < best else (best, rate / 2)
    assert progress.done and rate < 0.1 <= 2 * rate and progress.shrunk == 6


def test_a_complete_training_is_not_repeated_and_another_is_set_aside(tiny, tmp_path, capsys):
    first = settings("tta", epochs=1)
    train(first, tiny / "train.bin", tiny / "valid.bin", tmp_path / "m", "cpu")
    before, log = weights(tmp_path / "m"), (tmp_path / "m/metrics.jsonl").read_text()
    train(first, tiny / "train.bin", tiny / "valid.bin", tmp_path / "m", "cpu")
    assert weights(tmp_path / "m") == before and (tmp_path / "m/metrics.jsonl").read_text() == log
    train(dataclasses.replace(first, seed=2), tiny / "train.bin", tiny / "valid.bin", tmp_path / "m", "cpu")
    assert weights(tmp_path / "m.1") == before
    assert weights(tmp_path / "m") != before
    assert "kept as" in capsys.readouterr().out


def test_patience_stops_early_and_keeps_the_best(tiny, tmp_path):
    hot = settings("causal", epochs=50, patience=2, optim=Optim(lr=0.3, warmup=1), valid_every=3)
    progress = train(hot, tiny / "train.bin", tiny / "valid.bin", tmp_path / "m", "cpu")
    lines = [json.loads(line) for line in (tmp_path / "m/metrics.jsonl").read_text().splitlines()]
    losses = [line["valid_loss"] for line in lines if "valid_loss" in line]
    assert progress.done and progress.worse == 2 and losses[-3] == min(losses)
    assert load_metadata(tmp_path / "m/model.safetensors")["valid_loss"] == pytest.approx(min(losses), abs=1e-6)


def test_a_loss_that_is_not_finite_names_the_batch(tiny, tmp_path, monkeypatch):
    step = Training.step

    def poisoned(self, indices):
        if self.progress.step == 4:
            self.lm.trunk.head_dense.bias.data.fill_(float("nan"))
        return step(self, indices)

    monkeypatch.setattr(Training, "step", poisoned)
    with pytest.raises(UserError, match=r"not finite at step 5 \(batch 5 of epoch 1: sentences \d+"):
        train(settings("tta"), tiny / "train.bin", tiny / "valid.bin", tmp_path / "m", "cpu")


def test_settings_and_command_line(tiny, tmp_path, capsys):
    from lmtools.cli import main

    conf = tmp_path / "c.yaml"
    conf.write_text(yaml.safe_dump({"model": "tta", "objective": "autoencoding", "arch": {"layers": 1, "dim": 8, "heads": 2, "ffn": 8}}))
    corpora = ["--train", str(tiny / "train.bin"), "--valid", str(tiny / "valid.bin")]
    base = ["train", "--conf", str(conf), *corpora, "--out", str(tmp_path / "m")]
    for wrong, message in (
        ("optim.lrr=1", "unknown setting 'optim.lrr'; did you mean lr?"),
        ("arch.heads=3", "not a multiple"),
        ("arch.width=3", "unknown setting 'arch.width'"),
        ("model=rnn", "known: causal, masked, tta"),
        ("batch.sentences=null", "either batch.sentences or batch.tokens"),
        ("optim.name=lion", "known: adam"),
    ):
        assert main([*base, wrong]) == 1
        err = capsys.readouterr().err
        assert message in err and err.count("\n") == 1, err
    assert main([*base, "steps=3"]) == 0
    lm, subword = load_model(tmp_path / "m")
    assert lm.settings.steps == 3 and subword.size == lm.size


def test_bfloat16_follows_float32(tiny, tmp_path):
    """Matrix products in bfloat16 change the course of a short training only slightly."""
    best = {
        p: train(settings("tta", precision=p), tiny / "train.bin", tiny / "valid.bin", tmp_path / p, "cpu").best
        for p in ("float32", "bfloat16")
    }
    assert best["bfloat16"] == pytest.approx(best["float32"], abs=0.05)


def test_a_damaged_model_directory_is_refused(trained, tmp_path):
    import shutil

    shutil.copytree(trained["tta"], tmp_path / "m")
    (tmp_path / "m/model.safetensors").write_bytes((trained["tta"] / "model.safetensors").read_bytes()[:-100])
    with pytest.raises(UserError, match="not a readable safetensors file"):
        load_model(tmp_path / "m")
    shutil.copy(trained["tta"] / "model.safetensors", tmp_path / "m")
    config = (tmp_path / "m/config.yaml").read_text()
    (tmp_path / "m/config.yaml").write_text(config.replace("dim: 16", "dim: 32"))
    with pytest.raises(UserError, match="does not fit config"):
        load_model(tmp_path / "m")
    (tmp_path / "m/config.yaml").write_text(config.replace("hash: ", "hash: 0"))
    with pytest.raises(UserError, match="not the vocabulary"):
        load_model(tmp_path / "m")


def test_model_directories_hold_no_pickle(trained):
    for path in trained["tta"].rglob("*"):
        assert path.suffix in (".yaml", ".safetensors", ".jsonl", ".txt", ".model", "") and not path.name.endswith((".pt", ".pkl"))
        if path.is_file():
            assert b"\x80\x04\x95" not in path.read_bytes()[:64]


def test_weights_are_saved_once(trained):
    names = load_tensors(trained["tta"] / "model.safetensors")
    assert "output.weight" not in names and torch.is_tensor(names["output.bias"])
