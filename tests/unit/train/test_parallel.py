"""Two processes of torchrun train what one trains; either may stop all, and one goes on from where
two were.
"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from shlex import split

import pytest
import torch
from safetensors.torch import load_file as load_tensors
from spelled import ARCH as ELMO
from toys import settings

from lmtools.models.checkpoint import load_metadata
from lmtools.models.settings import Batch, Lists, Optim
from lmtools.train import train

TRANSFORMER = {"layers": 1, "dim": 16, "heads": 2, "ffn": 32, "positions": 16, "dropout": 0.0}
LSTM = {"layers": 2, "dim": 8, "units": 12, "tied": False, "dropout": 0.0}
GCNN = {"dim": 8, "blocks": ["[3, 12]", "[1, 6; 3, 6; 1, 12]"], "dropout": 0.0}
ADAPTIVE = {"criterion": "adaptive", "output": {"cutoffs": [6, 16], "divide": 2.0}}
SAMPLED = {"criterion": "bce-nce", "output": {"samples": 12}}


def optim(name, lr, **changes):
    return Optim(
        name=name, lr=lr, warmup=2, weight_decay=0.01, momentum=0.9, decay="plateau", **changes
    )


def plans():
    """Settings by name: each kind of gradient, objective and batch once, without dropout."""
    short = {"steps": 8, "valid_every": 4, "checkpoint_every": 4}
    base = settings("causal", **short)
    return {
        "causal": settings("causal", arch=TRANSFORMER, optim=optim("sgd", 0.5), **short),
        "continued": settings("causal", arch=TRANSFORMER, optim=optim("sgd", 0.05), **short),
        "seq2seq": settings(
            "seq2seq", arch={**TRANSFORMER, "decoder_layers": 1}, optim=optim("sgd", 0.5), **short
        ),
        "masked": settings("masked", arch=TRANSFORMER, optim=optim("sgd", 0.5), **short),
        "sampled": settings("lstm", arch=LSTM, optim=optim("adagrad", 0.1), **SAMPLED, **short),
        "parts": settings(
            "lstm",
            arch=LSTM,
            optim=optim("adagrad", 0.1),
            batch=Batch(sentences=7),
            accumulate=3,
            **SAMPLED,
            **short,
        ),
        "lone": settings(
            "causal",
            arch=TRANSFORMER,
            optim=optim("sgd", 0.5, sparse=True),
            batch=Batch(sentences=1),
            **SAMPLED,
            **short,
        ),
        "stopped": settings("lstm", arch=LSTM, optim=optim("nag", 0.1), **ADAPTIVE, **short),
        "gcnn": replace(
            base, model="gcnn", arch=GCNN, optim=optim("nag", 0.1, clip=0.1), **ADAPTIVE
        ),
        "elmo": replace(
            base, model="elmo", objective="two-way", arch=ELMO, optim=optim("adagrad", 0.1)
        ),
        "lists": settings(
            "causal",
            arch=TRANSFORMER,
            optim=optim("sgd", 0.05),
            batch=Batch(sentences=5),
            lists=Lists("mwer", sample=3),
            **short,
        ),
    }


SCRIPT = """
import importlib.util, json, os, signal, sys, torch
from datetime import timedelta
sys.path.insert(0, {tests!r})
torch.set_num_threads(1)
spec = importlib.util.spec_from_file_location("plans", {here!r})
plans = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plans)
from lmtools.base.errors import UserError
from lmtools.train import Stopped, loop, train
torch.distributed.init_process_group("gloo", timeout=timedelta(seconds=60))
rank, told = int(os.environ["RANK"]), {{}}
step = loop.Training.step
def stopping(self, batch):
    if rank == 1 and self.progress.step == stop_at:
        os.kill(os.getpid(), signal.SIGTERM)
    return step(self, batch)
loop.Training.step = stopping
for name, made in plans.plans().items():
    stop_at = 5 if name == "stopped" else None  # neither at a checkpoint nor at the end
    try:
        where = *plans.corpora({tiny!r}, name), {out!r} + "/" + name
        told[name] = train(made, *where, "cpu", plans.start({out!r}, name)).best
    except Stopped as stopped:
        told[name] = str(stopped)
missing = [{tiny!r} + "/train.bin", {out!r} + "/missing.bin"][rank]  # for the second process alone
try:
    train(plans.plans()["causal"], missing, missing, {out!r} + "/refused", "cpu")
except UserError as error:
    told["missing"] = [type(error).__name__, str(error)]
with open({out!r} + "/" + str(rank) + ".json", "w") as file:
    json.dump(told, file)
torch.distributed.destroy_process_group()
sys.stderr.flush()
os._exit(0)  # as lmtools/__main__.py: in Python's own end a thread of gloo may abort the process
"""


def corpora(tiny, name):
    """The training and the validation corpus of a plan."""
    if name == "lists":
        return [os.path.join(tiny, "lists.jsonl")] * 2
    kind = {"elmo": "-spelled", "seq2seq": "-pairs"}.get(name, "")
    return [os.path.join(tiny, f"{part}{kind}.bin") for part in ("train", "valid")]


def start(out, name):
    """The model whose weights a plan starts from: one of an earlier plan, or none."""
    return os.path.join(out, "causal") if name in ("continued", "lists") else None


@pytest.fixture(scope="module")
def two(spelled, pairs, tmp_path_factory):
    """What two processes left and what each of them was told."""
    out = tmp_path_factory.mktemp("two")
    rows = []
    for number, ref in enumerate((spelled / "train.txt").read_text().splitlines()[:32]):
        texts = [ref, f"the {ref}", f"{ref} river city", "he said", "they"]
        rows.append({"utt": f"u{number}", "ref": ref})
        rows[-1]["hyps"] = [{"text": t, "scores": {"am": -len(t)}} for t in texts]
    (spelled / "lists.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    script = out / "script.py"
    script.write_text(
        SCRIPT.format(
            tests=os.path.dirname(sys.modules["toys"].__file__),
            here=__file__,
            tiny=str(spelled),
            out=str(out),
        )
    )
    command = [
        sys.executable,
        *split("-m torch.distributed.run --standalone --nproc-per-node 2"),
        str(script),
    ]
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return out, [json.loads((out / f"{rank}.json").read_text()) for rank in range(2)], ran.stderr


@pytest.mark.parametrize("name", sorted(plans().keys() - {"continued", "parts"}))
def test_accumulated_batches_make_the_step_of_one_batch(spelled, two, tmp_path, name):
    """1 x 64 = 4 x 16, after one step and for the validation, whatever is drawn for a batch."""
    where, init = corpora(str(spelled), name), start(two[0], name)
    weights, best = [], []
    for count in (1, 4):
        batch = Batch(sentences=64 // count)
        some = replace(plans()[name], batch=batch, accumulate=count, steps=1)
        best.append(train(some, *where, tmp_path / str(count), "cpu", init).best)
        weights.append(load_tensors(tmp_path / str(count) / "model.safetensors"))
    assert best[1] == pytest.approx(best[0], rel=1e-6)
    for key, tensor in weights[0].items():
        torch.testing.assert_close(weights[1][key], tensor, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", plans())
def test_two_processes_make_what_one_makes(spelled, two, tmp_path, name):
    out, told, _ = two
    some, where, init = plans()[name], corpora(str(spelled), name), start(out, name)
    alone = train(some, *where, tmp_path / name, "cpu", init)
    # stopped: goes on alone; others are complete
    together = train(some, *where, out / name, "cpu", init)
    assert together.best == pytest.approx(alone.best, rel=1e-5)
    assert together.tokens == alone.tokens
    assert together.shrunk == alone.shrunk
    if name == "stopped":
        assert "stopped by SIGTERM at step 6, saved" in told[0][name]
        assert told[0][name] == told[1][name]
    else:
        assert told[0][name] == told[1][name] == together.best
    for file in ("model.safetensors", "checkpoint.safetensors"):
        one, both = load_tensors(tmp_path / name / file), load_tensors(out / name / file)
        assert one.keys() == both.keys()
        for key, tensor in one.items():
            torch.testing.assert_close(
                both[key], tensor, rtol=1e-4, atol=2e-6, msg=lambda text, key=key: f"{key}: {text}"
            )
    steps = [
        load_metadata(directory / name / "checkpoint.safetensors")["progress"]["step"]
        for directory in (tmp_path, out)
    ]
    assert steps == [8, 8]


def test_a_mistake_in_one_process_ends_all_and_is_told_once(two):
    _, (first, second), stderr = two
    assert first["missing"][0] == "UserError" and second["missing"][0] == "AlreadyReported"
    assert "missing.bin" in first["missing"][1] and first["missing"][1] == second["missing"][1]
    assert stderr.count(" by 2 processes") == len(plans())  # one process prints
