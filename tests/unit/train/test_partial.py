"""Trainings of a part of a model: what is frozen stays, low-rank updates are what autograd makes of
them, the saved model is an ordinary one.
"""

import dataclasses

import pytest
import torch
from torch.func import functional_call
from toys import settings

from lmtools.base.config import dump
from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.models.checkpoint import load_model, load_tensors
from lmtools.models.device import choose_device
from lmtools.models.settings import Batch, Freeze, LowRankUpdates, Optim
from lmtools.text.corpus import Corpus
from lmtools.train import train
from lmtools.train.directory import TrainingPlan
from lmtools.train.loop import Training
from lmtools.train.parallel import World

CPU = choose_device("cpu")


def last_weights(directory) -> dict:
    """The tensors of a model as its last step left them."""
    saved = load_tensors(directory / "checkpoint.safetensors")
    return {n.removeprefix("model."): t for n, t in saved.items() if n.startswith("model.")}


def changed(before, after) -> set[str]:
    """The names of the tensors that a training changed in its `before`."""
    old, new = load_tensors(before / "model.safetensors"), last_weights(after)
    assert set(old) == set(new)
    return {name for name in old if not torch.equal(old[name], new[name])}


def continued(model, source, tiny, out, **changes):
    """The directory of a training that goes on from `source` for a few steps, badly enough
    regularised to change everything that it may.
    """
    optim = Optim(lr=5e-3, warmup=0, decay="none", weight_decay=0.0)
    some = settings(model, **{"steps": 4, "valid_every": 1, "optim": optim, **changes})
    train(some, tiny / "train.bin", tiny / "train.bin", out, "cpu", source)
    return out


@pytest.mark.parametrize(
    ("model", "freeze", "stays"),
    [
        ("causal", {"embedding": True}, ("trunk.embedding.",)),
        ("causal", {"layers": 1}, ("trunk.blocks.0.",)),
        ("masked", {"layers": 2}, ("trunk.blocks.",)),
        ("causal", {"output": True}, ("trunk.embedding.token.", "output.")),
        ("lstm", {"embedding": True, "layers": 1}, ("trunk.embedding.", "trunk.layers.0.")),
        ("lstm", {"output": True}, ("output.",)),
    ],
)
def test_what_is_frozen_stays(trained, tiny, tmp_path, model, freeze, stays):
    made = continued(model, trained[model], tiny, tmp_path / "m", freeze=Freeze(**freeze))
    names = set(load_tensors(made / "model.safetensors"))
    frozen = {name for name in names if name.startswith(stays)}
    assert frozen and changed(trained[model], made) == names - frozen
    assert load_model(made)[0].settings.freeze == Freeze(**freeze)


@pytest.mark.parametrize("embeddings", [False, True])
def test_low_rank_updates_are_of_low_rank_and_nothing_else_changes(
    trained, tiny, tmp_path, capsys, embeddings
):
    lora = LowRankUpdates(rank=2, alpha=4.0, embeddings=embeddings)
    how = {"lora": lora, "freeze": Freeze(layers=1)}
    made = continued("causal", trained["causal"], tiny, tmp_path / "m", **how)
    names, old = changed(trained["causal"], made), load_model(trained["causal"])[0].state_dict()
    new, whole = last_weights(made), set()
    for name in names:
        if name.startswith(("trunk.embedding", "output")):
            whole.add(name)
            continue
        assert name.startswith(("trunk.blocks.1.", "trunk.head_dense."))
        sizes = torch.linalg.svdvals((new[name] - old[name]).double())
        assert sizes[1] > 1e-4 and sizes[2] < 1e-6, name
    assert len(names - whole) == 6 and bool(whole) == embeddings
    learnt = sum(2 * sum(new[name].shape) for name in names - whole)
    if not embeddings:
        assert f" parameters ({learnt:,} are learnt)" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["causal", "lstm"])
def test_a_low_rank_step_is_that_of_autograd(trained, corpora, tmp_path, model):
    """The gradients of A and B by the chain rule through W0 + alpha / rank * B A."""
    lora, optim = LowRankUpdates(rank=3, alpha=6.0), Optim(name="sgd", lr=0.1, warmup=0, clip=0.0)
    some = settings(model, lora=lora, optim=dataclasses.replace(optim, weight_decay=0.0))
    some = dataclasses.replace(some, arch={**some.arch, "dropout": 0.0})
    places = {"device": CPU, "out": tmp_path / "m", "init": trained[model]}
    training = Training(TrainingPlan.read(some, *corpora, **places), World())
    low, lm = training.low_rank, training.lm
    for up in low.up.values():
        torch.nn.init.normal_(up, std=0.1)
    low.merge()
    factors = {n: (low.up[n].detach().clone(), low.down[n].detach().clone()) for n in low.matrices}
    for pair in factors.values():
        for factor in pair:
            factor.requires_grad_(True)
    made = {n: low.start[n] + 2.0 * (up @ down) for n, (up, down) in factors.items()}
    chosen = training.train.at(0)
    lines = chosen.segments.batch(chosen.indices)
    examples = lm.objective.training(lines, None, lm.size)
    lm.train()
    loss, count = functional_call(lm, made, (examples,))
    (loss / count).backward()
    training.step(training.train.at(0))
    for name, pair in factors.items():
        for mine, its in zip((low.up[name], low.down[name]), pair, strict=True):
            torch.testing.assert_close(mine.detach(), (its - 0.1 * its.grad).detach())
        after = low.start[name] + 2.0 * (low.up[name] @ low.down[name])
        torch.testing.assert_close(low.matrices[name], after)


SGD = Optim(name="nag", lr=0.1, warmup=2, momentum=0.9, decay="plateau")
RESUMED = {
    "frozen": ("causal", {"freeze": Freeze(embedding=True, layers=1)}),
    "lora": ("tta", {"lora": LowRankUpdates(rank=2, embeddings=True)}),
    "streams": (
        "lstm",
        {"lora": LowRankUpdates(rank=2), "batch": Batch(streams=30, unroll=5), "optim": SGD},
    ),
    "sparse": ("lstm", {"optim": Optim(lr=5e-3, sparse=True), "freeze": Freeze(layers=1)}),
}


@pytest.mark.parametrize("case", RESUMED)
def test_stopped_and_resumed_gives_the_same_bytes(trained, corpora, tmp_path, train_in_parts, case):
    model, changes = RESUMED[case]
    some = settings(model, **{"steps": 17, **changes})
    train(some, *corpora, tmp_path / "whole", "cpu", trained[model])
    train_in_parts([3, 9, 14], some, *corpora, tmp_path / "parts", "cpu", trained[model])
    for name in ("model", "checkpoint"):
        parts, whole = (
            load_tensors(tmp_path / run / f"{name}.safetensors") for run in ("parts", "whole")
        )
        assert set(parts) == set(whole)
        assert all(torch.equal(parts[one], whole[one]) for one in whole)


def test_what_does_not_fit_is_refused_in_a_line(trained, tiny, corpora, tmp_path, capsys):
    (conf := tmp_path / "c.yaml").write_text(dump(settings("causal")))
    base = (
        f"train --conf {conf} --train {tiny}/train.bin --valid {tiny}/valid.bin --out {tmp_path}/m"
    )
    init = f"--init {trained['causal']}"
    for given, message in (
        (
            "lora.rank=2",
            "freeze and lora.rank keep weights of another model; give it as --init DIR",
        ),
        ("freeze.embedding=true", "give it as --init DIR"),
        (f"{init} freeze.layers=3", "freeze.layers: 3 is more than the 2 layers"),
        (f"{init} freeze.layers=-1", "freeze.layers: -1 is too small"),
        (f"{init} lora.rank=2 freeze.layers=2 arch.norm=pre", "arch.norm is post there and pre"),
        (f"{init} freeze.embeddings=true", "unknown setting 'freeze.embeddings'; did you mean"),
    ):
        assert main([*base.split(), *given.split()]) == 1
        said = capsys.readouterr().err
        assert message in said and said.count("\n") == 1, said
        assert not (tmp_path / "m").exists()
    with pytest.raises(UserError, match="nothing is left to train"):
        every = Freeze(embedding=True, layers=1, output=True)
        lone = {"arch": {**settings("lstm").arch, "layers": 1}, "freeze": every}
        train(settings("lstm", **{**lone, "freeze": Freeze(), "steps": 1}),
              *corpora, tmp_path / "one", "cpu")  # fmt: skip
        continued("lstm", tmp_path / "one", tiny, tmp_path / "m", **lone)


def test_settings_without_it_are_those_of_older_versions(tiny, corpora):
    """What was trained before is not trained again."""
    said = dump(settings("causal"))
    assert "freeze" not in said and "lora" not in said
    assert "rank: 2" in dump(settings("causal", lora=LowRankUpdates(rank=2)))
    plan = TrainingPlan.read(settings("causal"), *corpora, out="m", device=CPU)
    assert plan.fingerprint == fingerprint_of_0_1(settings("causal"), tiny)


def fingerprint_of_0_1(some, tiny) -> str:
    """As it was made before there were freeze and lora."""
    import hashlib
    import json

    tree = dataclasses.asdict(some)
    del tree["freeze"], tree["lora"]
    corpora = [Corpus.open(tiny / f"{part}.bin") for part in ("train", "valid")]
    parts = tree, corpora[0].subword.hash, *(corpus.digest() for corpus in corpora)
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
