"""Training: exact resume after SIGKILL and SIGTERM, early stopping, refusal of bad losses, nothing
overwritten.
"""

import dataclasses
import itertools
import json
import math
import os
import shutil
import signal
import subprocess
import sys

import pytest
import torch
import yaml
from safetensors.torch import load_file as load_tensors
from spelled import random_elmo
from toys import OBJECTIVE, TRANSFORMER, read_log, saved_bytes, settings

from lmtools.base.errors import UserError
from lmtools.models.checkpoint import describe_model, load_metadata, load_model, model_hash
from lmtools.models.device import machine_facts
from lmtools.models.objectives import CausalObjective, count_targets
from lmtools.models.settings import Batch, Optim
from lmtools.text.corpus import Corpus, binarise_shards
from lmtools.train import train, validation
from lmtools.train.loop import Training
from lmtools.train.validation import Validation


def weights(directory, *names) -> list[bytes]:
    names = names or ("model", "checkpoint")
    return [(directory / f"{name}.safetensors").read_bytes() for name in names]


@pytest.mark.parametrize("model", OBJECTIVE)
def test_training_learns(trained, model):
    losses = [row["valid_loss"] for row in read_log(trained[model], "valid_loss")]
    assert losses[-1] < losses[0]
    assert load_metadata(trained[model] / "checkpoint.safetensors")["progress"][
        "best"
    ] == pytest.approx(min(losses), abs=1e-6)


COMMAND = """
import os, sys, torch, torch._dynamo  # which optimisers import
sys.path.insert(0, {tests!r})
torch.set_num_threads(1)
from toys import settings
from lmtools.train import loop
step = loop.Training.step
def run(model, train, valid, out, kill_at, sig):
    def killing(self, indices):
        if self.progress.step == kill_at:
            os.kill(os.getpid(), sig)
        return step(self, indices)
    loop.Training.step = killing
    try:
        loop.train(settings(model), train, valid, out, "cpu")
    except loop.Stopped:
        os._exit(143)
    os._exit(0)
ends = []
for one in {runs!r}:
    child = os.fork()
    if not child:
        run(*one)
    ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(ends)
"""


def test_killed_at_any_step_and_resumed_gives_the_same_bytes(pairs, tmp_path):
    """SIGKILL before, between and after checkpoints, and SIGTERM, against one run that never
    stopped; of text, and of pairs, in forks.
    """
    kills = ((3, signal.SIGKILL), (7, signal.SIGKILL), (9, signal.SIGTERM), (11, signal.SIGKILL))
    steps = [("whole", -1, 0), *(("pieces", step, int(sig)) for step, sig in kills)]
    runs = [
        (
            *(model, *(str(pairs / f"{part}{corpus}.bin") for part in ("train", "valid"))),
            *(str(tmp_path / model / name), step, sig),
        )
        for model, corpus in (("causal", ""), ("seq2seq", "-pairs"))
        for name, step, sig in (*steps, ("pieces", -1, 0))
    ]
    tests = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    command = [sys.executable, "-c", COMMAND.format(tests=tests, runs=runs)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    ends = [0, *(143 if sig == signal.SIGTERM else -sig for _, sig in kills), 0]
    assert json.loads(done.stdout.splitlines()[-1]) == ends * 2
    for model in ("causal", "seq2seq"):
        whole, pieces = (tmp_path / model / name for name in ("whole", "pieces"))
        assert saved_bytes(pieces) == saved_bytes(whole)
        assert read_log(pieces, "valid_loss") == read_log(whole, "valid_loss") != []


ADAPTIVE = {"criterion": "adaptive", "output": {"cutoffs": [6, 16], "divide": 2.0}}
RARE = {
    "optim": Optim(name="nag", lr=0.1, warmup=2, momentum=0.9, clip=0.1, decay="plateau"),
    **ADAPTIVE,
}
FAMILIES = {
    "gcnn": {"model": "gcnn", "arch": {"dim": 8, "blocks": ["[3, 12]", "[1, 6; 3, 6; 1, 12]"],
    "dropout": 0.1}, **RARE},
    "elmo": {
        "model": "elmo", "objective": "two-way", "optim": Optim(name="adagrad", lr=0.1, warmup=2),
        "arch": {"piece_dim": 4, "filters": [[1, 4], [2, 6]], "highway": 1, "dim": 8, "units": 12,
        "layers": 2, "dropout": 0.1},
    },
    "lstm": {"model": "lstm", "arch": {"layers": 2, "dim": 8, "units": 12, "projection": 6,
    "dropout": 0.1}},
    "tied": {"model": "lstm", "arch": {"layers": 2, "dim": 16, "units": 24, "tied": True,
    "dropout": 0.1}},
    "sampled": {
        "model": "lstm", "arch": {"layers": 1, "dim": 8, "units": 12}, "criterion": "bce-nce",
        "output": {"samples": 12},
        "optim": Optim(name="adagrad", lr=0.1, warmup=2),
    },
    "tta": {"model": "tta", "objective": "autoencoding",
    "arch": {**TRANSFORMER, "attention_dropout": 0.2, "query": "position"}},
    "masked": {"model": "masked", "objective": "masked",
    "arch": {**TRANSFORMER, "attention_dropout": 0.2}},
    "plateau": {"optim": Optim(name="sgd", lr=9.0, warmup=2, clip=0.0, decay="plateau"),
    "valid_every": 1},
    # of two epochs, the second converged: it gains less than all that there is
    "gain": {"optim": Optim(name="adagrad", lr=0.1, decay="none", warmup=0), "steps": None,
    "epochs": 9, "min_gain": 1e9, "keep_epochs": (1,)},
}  # fmt: skip
FAMILIES["shards"] = {}
FAMILIES["accumulated"] = {**FAMILIES["sampled"], "accumulate": 3, "batch": Batch(sentences=5)}
FAMILIES["cuts"] = {**FAMILIES["elmo"], "cut_alpha": 0.3}
CORPORA = {"elmo": "-spelled", "cuts": "-cuts"}


@pytest.mark.parametrize("family", FAMILIES)
def test_stopped_at_any_step_and_resumed_gives_the_same_bytes(
    spelled, tmp_path, train_in_parts, family
):
    """Stopped before and after a checkpoint, and by SIGTERM in the second epoch."""
    some = dataclasses.replace(settings("causal", epochs=2, steps=17), **FAMILIES[family])
    corpora = [spelled / f"{part}{CORPORA.get(family, '')}.bin" for part in ("train", "valid")]
    if "shards" in family:
        subword = Corpus.open(corpora[0]).subword
        corpora[0] = tmp_path / "shards.bin"
        binarise_shards([spelled / "train.txt"], subword, corpora[0], 2000)
        assert len(Corpus.open(corpora[0]).shards) > 3
    whole = train(some, *corpora, tmp_path / "whole", "cpu")
    parts = train_in_parts([3, 9, 14], some, *corpora, tmp_path / "parts", "cpu")
    assert saved_bytes(tmp_path / "parts") == saved_bytes(tmp_path / "whole")
    timeless = {"seconds": 0.0}
    assert dataclasses.replace(parts, **timeless) == dataclasses.replace(whole, **timeless)


def test_cuts_are_drawn_in_training_alone(spelled, tmp_path):
    """The first step's loss is another one; the validation of the weights at the start is not."""
    corpora = [spelled / f"{part}-cuts.bin" for part in ("train", "valid")]
    still = {**FAMILIES["elmo"], "optim": Optim(lr=0.0, weight_decay=0.0)}
    seen = {}
    for alpha in (None, 0.3):
        some = dataclasses.replace(settings("causal", epochs=1, log_every=1), **still)
        train(dataclasses.replace(some, cut_alpha=alpha), *corpora, tmp_path / f"{alpha}", "cpu")
        log = [read_log(tmp_path / f"{alpha}", name) for name in ("train_loss", "valid_loss")]
        seen[alpha] = log[0][0]["train_loss"], log[1][0]["valid_loss"]
    assert seen[None][0] != seen[0.3][0] and seen[None][1] == seen[0.3][1]
    with pytest.raises(UserError, match="not char"):
        char = [spelled / f"{part}-spelled.bin" for part in ("train", "valid")]
        train(dataclasses.replace(some, cut_alpha=0.3), *char, tmp_path / "m", "cpu")


def test_a_plateau_lowers_the_learning_rate(corpora, tmp_path):
    """After each validation that is not the best so far, until it is below the least."""
    optim = Optim(name="sgd", lr=4.0, warmup=0, clip=0.0, decay="plateau", shrink=0.5, min_lr=0.1)
    some = settings(
        "causal", optim=optim, valid_every=2, log_every=2, checkpoint_every=1000, epochs=50
    )
    progress = train(some, *corpora, tmp_path / "m", "cpu")
    lines = read_log(tmp_path / "m", "step")
    best, rate = float("inf"), 4.0
    for trained, validated in zip(lines[::2], lines[1::2], strict=True):
        assert trained["lr"] == pytest.approx(rate)
        best, rate = (
            (validated["valid_loss"], rate) if validated["valid_loss"] < best else (best, rate / 2)
        )
    assert progress.done and rate < 0.1 <= 2 * rate and progress.shrunk == 6


@pytest.mark.parametrize("lr, warmup, told", [(0.0, 0, True), (0.0, 5, False), (1e-2, 0, False)])
def test_a_training_that_comes_to_nothing_is_told(
    tiny, corpora, tmp_path, monkeypatch, capsys, lr, warmup, told
):
    """Once it is well past its warm-up."""
    monkeypatch.setattr(validation, "BEGUN", 9)
    optim = Optim(lr=lr, warmup=warmup, decay="none")
    some = settings("causal", optim=optim, steps=9, epochs=None, valid_every=9)
    train(some, *corpora, tmp_path / "m", "cpu")
    said = capsys.readouterr().err
    counts = count_targets(CausalObjective(), Corpus.open(tiny / "train.bin"), 1000)
    p = [n / sum(counts) for n in counts if n]
    frequencies = -sum(share * math.log(share) for share in p)
    assert said.count(f"little below {frequencies:.2f}") == told, said


def test_a_complete_training_is_not_repeated_and_another_is_set_aside(corpora, tmp_path, capsys):
    first = settings("tta", epochs=1)
    train(first, *corpora, tmp_path / "m", "cpu")
    before, log = weights(tmp_path / "m"), (tmp_path / "m/metrics.jsonl").read_text()
    train(first, *corpora, tmp_path / "m", "cpu")
    assert weights(tmp_path / "m") == before and (tmp_path / "m/metrics.jsonl").read_text() == log
    train(dataclasses.replace(first, seed=2), *corpora, tmp_path / "m", "cpu")
    assert weights(tmp_path / "m.1") == before
    said = (tmp_path / "m.1/set_aside.txt").read_text()
    assert said == f"{tmp_path / 'm'}: held a training of other settings or data\n"
    assert weights(tmp_path / "m") != before
    assert "kept as" in capsys.readouterr().out


def test_patience_stops_early_and_keeps_the_best(corpora, tmp_path):
    hot = settings("causal", epochs=50, patience=2, optim=Optim(lr=0.3, warmup=1), valid_every=3)
    progress = train(hot, *corpora, tmp_path / "m", "cpu")
    losses = [row["valid_loss"] for row in read_log(tmp_path / "m", "valid_loss")]
    assert progress.done and progress.worse == 2 and losses[-3] == min(losses)
    assert load_metadata(tmp_path / "m/model.safetensors")["valid_loss"] == pytest.approx(
        min(losses), abs=1e-6
    )


def test_training_stops_where_an_epoch_gains_too_little_and_keeps_epochs(corpora, tmp_path, capsys):
    """Whatever is validated between the ends of epochs."""
    steady = Optim(lr=5e-3, decay="none", warmup=2)
    some = settings("causal", epochs=8, valid_every=None, optim=steady)
    per_epoch = train(some, *corpora, tmp_path / "whole", "cpu").step // 8
    log = read_log(tmp_path / "whole", "valid_loss")
    values = [math.exp(row["valid_loss"]) for row in log]
    gains = [before - after for before, after in itertools.pairwise(values)]
    least = gains[3] + 1e-3
    last = 2 + next(i for i, gain in enumerate(gains) if gain < least)
    assert 2 < last < 8, gains
    stopping = dataclasses.replace(some, min_gain=least, keep_epochs=(2, 7), valid_every=4)
    progress = train(stopping, *corpora, tmp_path / "m", "cpu")
    assert (progress.step, progress.done) == (last * per_epoch, True)
    said = f"converged: epoch {last} gained {gains[last - 2]:.2f} perplexity"
    assert said in capsys.readouterr().err
    # what was kept is a training of so many epochs; there was no seventh
    train(dataclasses.replace(some, epochs=2), *corpora, tmp_path / "two", "cpu")
    kept, two = tmp_path / "m/epoch-2", tmp_path / "two"
    assert saved_bytes(kept, "model") == saved_bytes(two, "model")
    assert load_model(tmp_path / "m/epoch-2")[0].settings == stopping
    assert not (tmp_path / "m/epoch-7").exists()


def test_a_loss_that_is_not_finite_names_the_batch(corpora, tmp_path, monkeypatch):
    step = Training.step

    def poisoned(self, indices):
        if self.progress.step == 4:
            self.lm.trunk.head_dense.bias.data.fill_(float("nan"))
        return step(self, indices)

    monkeypatch.setattr(Training, "step", poisoned)
    with pytest.raises(
        UserError, match=r"not finite at step 5 \(batch 5 of epoch 1: sentences \d+"
    ):
        train(settings("tta"), *corpora, tmp_path / "m", "cpu")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"optim": Optim(lr=5e-3, warmup=50_000)},
            "50,000 steps are more than the 4 of the training",
        ),
        ({"optim": Optim(lr=0.0, warmup=1)}, "optim.lr: 0, at which nothing is learnt"),
        ({"optim": Optim(lr=1e-9, warmup=1)}, "after 4 steps the model has learnt nothing from"),
        ({"optim": Optim(lr=5e-3, warmup=1, clip=1e-30)}, "learnt nothing from context"),
        ({"arch": {**TRANSFORMER, "positions": 6}}, "sentences are longer than the 5 tokens"),
        ({"steps": 40, "optim": Optim(lr=5e-3, warmup=1)}, None),
    ],
)
def test_a_training_that_can_learn_nothing_is_told_once(corpora, tmp_path, capsys, changes, told):
    learning = {"optim": Optim(lr=5e-3, warmup=1), "steps": 4 if "optim" in changes else 40}
    train(settings("causal", **{**learning, **changes}), *corpora, tmp_path / "m", "cpu")
    warnings = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert len(warnings) == (told is not None) and (told is None or told in warnings[0]), warnings


LSTM, GCNN = (f"model={model} objective=causal arch=null" for model in ("lstm", "gcnn"))


def test_settings_and_command_line(tiny, tmp_path, capsys):
    from lmtools.cli import main

    conf = tmp_path / "c.yaml"
    conf.write_text(
        yaml.safe_dump(
            {
                "model": "tta",
                "objective": "autoencoding",
                "arch": {"layers": 1, "dim": 8, "heads": 2, "ffn": 8},
            }
        )
    )
    corpora = ["--train", str(tiny / "train.bin"), "--valid", str(tiny / "valid.bin")]
    base = ["train", "--conf", str(conf), *corpora, "--out", str(tmp_path / "m")]
    for words, message in (
        ("optim.lrr=1", "unknown setting 'optim.lrr'; did you mean lr?"),
        ("arch.heads=3", "not a multiple"),
        ("arch.width=3", "unknown setting 'arch.width'"),
        ("model=rnn", "known: causal, masked, tta"),
        ("batch.sentences=null", "either batch.sentences or batch.tokens"),
        ("optim.name=lion", "known: adam"),
        ("optim.decay=cosine", "optim.decay: 'cosine' is unknown; known: linear, inverse-root, "),
        ("cut_alpha=-1", "cut_alpha: -1.0 is too small"),
        ("min_gain=-1", "min_gain: -1.0 is too small"),
        ("keep_epochs=[3,0]", "keep_epochs: (3, 0) is too small; give at least 1"),
        ("keep_epochs=[11]", "keep_epochs: [11] is beyond epochs 10"),
        ("objective=masked", "objective: masked does not go with model tta, which learns autoen"),
        ("model=causal", "objective: autoencoding does not go with model causal"),
        ("model=gcnn", "objective: autoencoding does not go with model gcnn"),
        ("optim=0", "'optim' is 0; expected a group of settings"),
        ("optim.eps=0", "optim.eps: 0.0 is too small; give more than 0"),
        ("optim.betas=[0.9]", "setting 'optim.betas' is [0.9]; expected tuple"),
        ("optim.betas=[0.9,1]", "optim.betas: (0.9, 1.0) is too large; give less than 1"),
        ("optim.momentum=1", "optim.momentum: 1.0 is too large; give less than 1"),
        ("optim.shrink=0", "optim.shrink: 0.0 is too small; give more than 0"),
        ("optim.weight_decay=1e5", "optim.weight_decay: 100000.0 times optim.lr 0.0001 takes all"),
        ("optim.decay=plateau optim.min_lr=1", "optim.min_lr: 1.0 is not below optim.lr"),
        ("arch.dropout=1.5", "arch.dropout: 1.5 is too large; give less than 1"),
        ("arch.attention_dropout=1", "arch.attention_dropout: 1.0 is too large"),
        ("arch.positions=2", "arch.positions: 2 leave no room beside 2 boundary tokens"),
        ("arch.dim=3000000000", "arch.dim: 3000000000 is too large; give less than 2,147,483,648"),
        ("batch.sentences=3000000000", "batch.sentences: 3000000000 is too large"),
        ("batch.sentences=4 batch.unroll=4", "batch.streams, batch.unroll: are of older versions"),
        ("lists.scale=0", "lists.scale: 0.0 is too small; give more than 0"),
        ("criterion=softmax output.smoothing=1", "output.smoothing: 1.0 is too large"),
        ("criterion=bce-nce output.samples=99999999", "output.samples: 99999999 is too large"),
        (
            "criterion=bce-nce output.noise=unigram output.power=50",
            "an id has probability 0 and its posterior could not be recovered",
        ),
        ("criterion=adaptive output.divide=0", "output.divide: 0.0 is too small; give at least 1"),
        ("criterion=adaptive output.cutoffs=[9,9]", "/m: output.cutoffs: [9, 9] do not ascend"),
        (f"{LSTM} arch.units=8 arch.projection=8", "arch.projection: 8 is not below arch.units 8"),
        (f"{GCNN} arch.residual_scale=0", "arch.residual_scale: 0.0 is too small"),
        (f'{GCNN} arch.blocks=["[2,99999999999999]"]', "not enough memory"),
        ("criterion=nce", "known: softmax, bce"),
        ("criterion=bce-nce output.noise=white", "output.noise: 'white' is unknown; known: log-"),
        ("criterion=bce-nce output.drawing=distinct", "samples: 8192 distinct ones cannot come"),
        ("criterion=bce-nce output.sample=9", "'output.sample'; did you mean samples?"),
        ("output.samples=9", "unknown setting 'output.samples'"),
        ("criterion=bce output.rival=0", "output.rival: 0.0 is too small; give more than 0"),
        ("seed=-1", "seed: -1 is too small; give at least 0"),
        ("seed=99999999999999999999", "seed: 99999999999999999999 is too large; give less than"),
        ("steps=0", "steps: 0 is too small; give at least 1"),
        ("valid_every=0", "valid_every: 0 is too small"),
        ("patience=-3", "patience: -3 is too small; give at least 1"),
        ("batch.sentences=0", "batch.sentences: 0 is too small"),
        ("optim.lr=-0.1", "optim.lr: -0.1 is too small; give at least 0"),
        ("optim.lr=.nan", "setting 'optim.lr' is nan; expected float"),
        ("optim.clip=1e400", "setting 'optim.clip' is '1e400'; expected float"),
        ("arch.heads=0", "arch.heads: 0 is too small; give at least 1"),
        ("arch.dim=-8", "arch.dim: -8 is too small"),
        ("arch.dropout=-0.5", "arch.dropout: -0.5 is too small; give at least 0"),
    ):
        assert main([*base, *words.split()]) == 1, words
        err = capsys.readouterr().err
        assert message in err and err.count("\n") == 1, err
    assert main([*base, "steps=3"]) == 0
    lm, subword = load_model(tmp_path / "m")
    assert lm.settings.steps == 3 and subword.size == lm.size


def test_bfloat16_follows_float32(corpora, tmp_path):
    """Matrix products in bfloat16 change the course of a short training only slightly."""
    best = {
        p: (train(settings("tta", precision=p), *corpora, tmp_path / p, "cpu").best)
        for p in ("float32", "bfloat16")
    }
    assert best["bfloat16"] == pytest.approx(best["float32"], abs=0.05)


def test_a_damaged_model_directory_is_refused(trained, tmp_path):
    shutil.copytree(trained["tta"], tmp_path / "m")
    (tmp_path / "m/model.safetensors").write_bytes(
        (trained["tta"] / "model.safetensors").read_bytes()[:-100]
    )
    with pytest.raises(UserError, match="not a readable safetensors file"):
        load_model(tmp_path / "m")
    shutil.copy(trained["tta"] / "model.safetensors", tmp_path / "m")
    config = (tmp_path / "m/config.yaml").read_text()
    for change in (("dim: 16", "dim: 32"), ("hash: ", "hash: 0")):
        (tmp_path / "m/config.yaml").write_text(config.replace(*change))
        with pytest.raises(
            UserError, match=r"config\.yaml: damaged, or edited after it was written"
        ):
            load_model(tmp_path / "m")
    (tmp_path / "m/config.yaml").write_text(config)
    shutil.copytree(tmp_path / "m/subword", tmp_path / "sw")
    change_vocabulary(tmp_path / "m/subword")
    with pytest.raises(UserError, match="not the vocabulary"):
        load_model(tmp_path / "m")


def change_vocabulary(directory):
    """Another word list, whole."""
    from lmtools.text import Normaliser
    from lmtools.text.subword import train as learn

    learn("word", ["another list"], None, Normaliser(), directory)


def test_the_weights_of_one_training_beside_the_config_of_another(corpora, trained, tmp_path):
    shutil.copytree(trained["tta"], tmp_path / "m")
    other = settings("tta", epochs=1, seed=3)
    train(other, *corpora, tmp_path / "other", "cpu")
    shutil.copy(tmp_path / "other/model.safetensors", tmp_path / "m")  # every name and shape fits
    with pytest.raises(UserError, match=r"m/model\.safetensors: belongs to another config\.yaml"):
        load_model(tmp_path / "m")


def flip(path, where=0.7):
    """Turn a bit of a file's content over."""
    data = bytearray(path.read_bytes())
    data[int(where * len(data))] ^= 0x10
    path.write_bytes(data)


def plain(directory) -> dict:
    """What a training leaves, without times."""
    return {
        **saved_bytes(directory),
        "model": (directory / "model.safetensors").read_bytes(),
        "config": (directory / "config.yaml").read_bytes(),
    }


@pytest.mark.parametrize("how", ["flipped", "cut", "missing", "other"])
# of 18 steps: the best weights are the last ones, or (a high learning rate) are not
@pytest.mark.parametrize("valid_every", [10, 4])
def test_train_mends_damaged_weights_or_trains_anew(
    corpora, trained, tmp_path, capsys, how, valid_every
):
    hot = settings(
        "causal",
        steps=18,
        valid_every=valid_every,
        optim=Optim(lr=5e-3 if valid_every == 10 else 0.3, warmup=1),
    )
    out = tmp_path / "m"
    progress = train(hot, *corpora, out, "cpu")
    last = progress.best_step == progress.step
    assert last == (valid_every == 10)
    before, path = plain(out), out / "model.safetensors"
    if how == "flipped":
        flip(path)
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif how == "missing":
        path.unlink()
    else:
        shutil.copy(trained["causal"] / "model.safetensors", path)
    damaged = path.read_bytes() if path.exists() else None
    capsys.readouterr()
    train(hot, *corpora, out, "cpu")
    assert plain(out) == before
    said = capsys.readouterr().out
    assert (
        "made again from the checkpoint"
        if last
        else f"it is kept as {out}.1, and training starts from the beginning"
    ) in said
    if not last and damaged:
        assert (tmp_path / "m.1/model.safetensors").read_bytes() == damaged
    load_model(out)


def test_train_goes_on_without_the_best_weights_where_later_ones_may_be_better(
    corpora, tmp_path, capsys, monkeypatch
):
    some = settings("causal", steps=18, valid_every=5, checkpoint_every=7)
    train(some, *corpora, tmp_path / "whole", "cpu")
    step = Training.step

    def killed(self, batch):
        if self.progress.step == 8:
            raise KeyboardInterrupt
        return step(self, batch)

    for name in ("better", "worse"):
        monkeypatch.setattr(Training, "step", killed)
        with pytest.raises(KeyboardInterrupt):
            train(some, *corpora, tmp_path / name, "cpu")
        flip(tmp_path / name / "model.safetensors")
        monkeypatch.setattr(Training, "step", step)
        if name == "worse":
            monkeypatch.setattr(Validation, "loss", lambda self, source=None: 99.0)
            with pytest.raises(
                UserError,
                match=r"the best weights, of step 5, were lost .* run the same command again",
            ):
                train(some, *corpora, tmp_path / name, "cpu")
            monkeypatch.undo()
        train(some, *corpora, tmp_path / name, "cpu")
        assert plain(tmp_path / name) == plain(tmp_path / "whole")
        assert (
            "the next validation that is better than the best so far writes them"
            in capsys.readouterr().out
        )
    assert (tmp_path / "worse.1").is_dir() and not (tmp_path / "better.1").exists()


def test_train_mends_a_damaged_description_and_sets_a_damaged_checkpoint_aside(
    corpora, tmp_path, capsys
):
    some = settings("tta", epochs=1)
    out = tmp_path / "m"
    train(some, *corpora, out, "cpu")
    before = plain(out)
    for damaged in ("config.yaml", "subword/vocab.txt", "subword/normaliser.yaml"):
        flip(out / damaged)
        train(some, *corpora, out, "cpu")
        assert plain(out) == before
        assert "damaged or changed; written again" in capsys.readouterr().out
        load_model(out)
    flip(out / "checkpoint.safetensors")
    train(some, *corpora, out, "cpu")
    assert plain(out) == before and weights(tmp_path / "m.1", "model") == [before["model"]]
    assert (
        "checkpoint.safetensors: damaged (its tensors are not those that were written); it is kept"
        f" as {out}.1" in capsys.readouterr().out
    )
    (out / "checkpoint.safetensors").unlink()
    train(dataclasses.replace(some, seed=5), *corpora, out, "cpu")
    # is not overwritten though nothing else says whose it is
    assert weights(tmp_path / "m.2", "model") == [before["model"]]


def test_a_model_of_an_older_version_is_taken_with_a_warning(trained, tmp_path, capsys):
    from safetensors.torch import save_file

    shutil.copytree(trained["tta"], tmp_path / "m")
    path, config = tmp_path / "m/model.safetensors", tmp_path / "m/config.yaml"
    save_file(load_tensors(path), path, {"lmtools": json.dumps({"step": 3, "valid_loss": 1.5})})
    config.write_text(
        "".join(line for line in config.read_text().splitlines(True) if not line.startswith("seal"))
    )
    load_model(tmp_path / "m")
    load_model(tmp_path / "m")
    err = capsys.readouterr().err
    assert (
        err == f"{path}: has no seal (an older version wrote it, or it was edited), so that damage"
        " would not be found\n"
    )


@pytest.mark.parametrize("when", ["checkpoint", "model", "metrics"])
def test_a_full_disk_is_told_in_one_line_and_the_training_goes_on_afterwards(
    corpora, tmp_path, monkeypatch, when
):
    import errno

    from safetensors import SafetensorError

    from lmtools.models import checkpoint
    from lmtools.train import log

    some = settings("causal", steps=12, valid_every=5, checkpoint_every=3, log_every=2)
    train(some, *corpora, tmp_path / "whole", "cpu")
    written, save, opener, full = [], checkpoint.save_file, open, True

    def save_file(tensors, path, metadata):
        written.append(path.name)
        if full and when in path.name and sum(when in name for name in written) == 2:
            path.write_bytes(b"torn")
            raise SafetensorError(
                "Error while serializing: I/O error: No space left on device (os error 28)"
            )
        save(tensors, path, metadata)

    def open_full(path, mode="r"):
        if full and when == "metrics" and mode == "a" and len(written) == 3:
            with opener(path, mode) as stream:
                stream.write('{"step": 8, "lo')
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opener(path, mode)

    monkeypatch.setattr(checkpoint, "save_file", save_file)
    monkeypatch.setattr(log, "open", open_full, raising=False)
    with pytest.raises(
        UserError, match=rf"{when}.*: cannot write: No space left on device; "
    ) as refused:
        train(some, *corpora, tmp_path / "m", "cpu")
    assert "\n" not in str(refused.value)
    full = False
    train(some, *corpora, tmp_path / "m", "cpu")
    assert plain(tmp_path / "m") == plain(tmp_path / "whole")
    whole, again = (read_log(tmp_path / name, "valid_loss") for name in ("whole", "m"))
    assert whole == again


@pytest.mark.parametrize("loss", ["nan", "inf"])
def test_a_validation_loss_that_is_not_finite_is_refused(corpora, tmp_path, monkeypatch, loss):
    losses = iter([2.0, float(loss)])
    monkeypatch.setattr(Validation, "loss", lambda self, source=None: next(losses))
    some = settings("causal", valid_every=4, checkpoint_every=100)
    with pytest.raises(UserError, match=f"the validation loss is {loss} at step 8; lower optim.lr"):
        train(some, *corpora, tmp_path / "m", "cpu")
    assert load_metadata(tmp_path / "m/checkpoint.safetensors")["progress"]["step"] == 4
    load_model(tmp_path / "m")


def test_weights_are_saved_once(trained):
    names = load_tensors(trained["tta"] / "model.safetensors")
    assert "output.weight" not in names and torch.is_tensor(names["output.bias"])


def test_machine_and_facts_stand_beside_the_weights(corpora, tmp_path):
    """In config.yaml: equal weights are equal files; older directories say neither."""
    out = tmp_path / "lm"
    how = settings("causal", steps=2, criterion="ce-is", output={"samples": 9})
    train(how, *corpora, out, "cpu")
    told = yaml.safe_load((out / "config.yaml").read_text())
    assert told["machine"] == machine_facts(torch.device("cpu"))
    assert told["machine"]["threads"] == torch.get_num_threads()
    lm, subword = load_model(out)  # which reads its settings from there
    assert told["facts"] == {
        "family": lm.trunk.title,
        "parameters": sum(parameter.numel() for parameter in lm.parameters()),
        "vocabulary": {"scheme": subword.scheme, "size": subword.size, "words": None},
        "criterion": {
            "name": "ce-is",
            "noise": "log-uniform",
            "samples": 9,
            "drawing": "replacement",
            "power": 0.75,
            "start": "noise",
            "target_in_sum": True,
        },
    }
    identity, before = model_hash(out), weights(out)
    del told["machine"], told["facts"], told["seal"]
    (out / "config.yaml").write_text(yaml.safe_dump(told))
    train(how, *corpora, out, "cpu")
    assert model_hash(out) == identity and weights(out) == before
    assert "facts" not in (out / "config.yaml").read_text()
    (out / "config.yaml").write_text("model: lstm")
    train(how, *corpora, out, "cpu")
    again = yaml.safe_load((out / "config.yaml").read_text())
    assert again["facts"]["parameters"] and model_hash(out) == identity


def test_facts_of_a_model_that_spells_words(tmp_path):
    lm, subword = load_model(random_elmo(tmp_path, "bpe", 40))
    facts = describe_model(lm, subword)
    assert facts["vocabulary"] == {"scheme": "bpe", "size": 40, "words": subword.words.size}
    assert facts["criterion"] == {"name": "softmax", "start": "uniform"}
