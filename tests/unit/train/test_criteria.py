"""Any model learns by any criterion, and what validation measures is the exact distribution."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from toys import ARCH, OBJECTIVE, settings

from lmtools.base.config import from_yaml, read_layers
from lmtools.cli import main
from lmtools.models.checkpoint import load_model
from lmtools.models.lm import LanguageModel
from lmtools.models.objectives import OBJECTIVES, count_targets, excluded_ids
from lmtools.models.outputs import CRITERIA
from lmtools.models.outputs.sampled import SAMPLED
from lmtools.models.settings import Optim, Settings
from lmtools.text.corpus import Corpus
from lmtools.text.subword import BOS, EOS, MASK, PAD
from lmtools.train import train

OUTPUT = {name: {"samples": 16} for name in SAMPLED} | {
    "adaptive": {"cutoffs": [8, 16], "divide": 2.0}
}


def made(family, criterion, **changes):
    """Settings of a tiny model."""
    return settings(
        family,
        criterion=criterion,
        output=OUTPUT.get(criterion, {}),
        arch=dict(ARCH[family]),
        **changes,
    )


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("family", [*OBJECTIVE, "seq2seq"])
def test_one_step_of_every_pair(pairs, family, criterion):
    torch.manual_seed(0)
    told = made(family, criterion)
    objective = OBJECTIVES[told.objective]
    corpus = Corpus.open(pairs / ("train-pairs.bin" if objective.pairs else "train.bin"))
    size = corpus.subword.size
    lm = LanguageModel(told, size, count_targets(objective, corpus, size))
    examples = lm.objective.training(corpus.batch(range(20)), np.random.default_rng(1), lm.size)
    loss, count = lm(examples)
    loss.backward()
    assert loss.isfinite() and count == len(examples.targets)
    assert all(p.grad is not None for name, p in lm.named_parameters() if "tails" not in name)
    lm.eval()
    with torch.no_grad():
        states = lm.trunk.head(lm.trunk.hidden(*examples.read).flatten(0, 1)[examples.rows])
        log_p = lm.output.distribution(states)
        exact = -log_p.gather(1, examples.targets[:, None]).sum()
        assert lm(examples)[0].item() == pytest.approx(exact.item(), rel=1e-4)
    assert log_p.exp().sum(1).numpy() == pytest.approx(1, abs=1e-4)
    if criterion in SAMPLED:
        assert log_p[:, list(excluded_ids(lm.objective))].exp().max() == 0


@pytest.mark.parametrize(
    ("criterion", "noise", "tied"),
    [
        ("bce-nce", "log-uniform", True),
        ("ce-mcs", "unigram", False),
        ("bce-is", "uniform", False),
        ("adaptive", None, True),
    ],
)
def test_a_trained_model_is_loaded_with_what_its_noise_was(
    tiny, corpora, tmp_path, criterion, noise, tied
):
    told = made("lstm", criterion, epochs=12, valid_every=60, optim=Optim(lr=2e-2, warmup=5))
    told.arch["tied"] = tied
    if noise:
        told.output["noise"] = noise
    progress = train(told, *corpora, tmp_path / "lm", "cpu")
    lm, _ = load_model(tmp_path / "lm")
    losses = [
        row["valid_loss"]
        for row in map(json.loads, (tmp_path / "lm/metrics.jsonl").read_text().splitlines())
        if "valid_loss" in row
    ]
    assert min(losses) == pytest.approx(progress.best, abs=1e-5)
    assert progress.best < 2.8  # 2.93 is the entropy of the words
    corpus = Corpus.open(tiny / "valid.bin")
    with torch.no_grad():
        loss, count = lm(lm.objective.scoring(corpus.batch(range(len(corpus)))))
    assert float(loss) / count == pytest.approx(progress.best, rel=1e-4)


def test_targets_are_counted_as_the_objective_predicts_them(tiny):
    corpus = Corpus.open(tiny / "train.bin")
    counts = {
        name: count_targets(kind, corpus, corpus.subword.size)
        for name, kind in OBJECTIVES.items()
        if name in OBJECTIVE.values()
    }
    assert (
        counts["causal"].sum()
        == corpus.header.tokens + len(corpus)
        == counts["autoencoding"].sum() - len(corpus)
    )
    assert counts["causal"][[PAD, EOS, BOS, MASK]].tolist() == [0, len(corpus), 0, 0]
    assert excluded_ids(OBJECTIVES["causal"]) == (PAD, BOS, MASK)
    assert excluded_ids(OBJECTIVES["autoencoding"]) == (PAD, MASK)


def test_what_does_not_fit_is_refused(tiny, tmp_path, capsys):
    (tmp_path / "c.yaml").write_text("model: lstm\nobjective: causal\narch: {units: 8, dim: 8}\n")
    base = (
        f"train --conf {tmp_path / 'c.yaml'} --train {tiny / 'train.bin'} --valid "
        f"{tiny / 'valid.bin'}"
    ).split()
    for wrong, message in (
        (["criterion=nce"], "known: softmax, bce"),
        (
            ["criterion=bce-nce", "output.noise=white"],
            "output.noise: 'white' is unknown; known: log-uniform",
        ),
        (
            ["criterion=bce-nce", "output.drawing=distinct"],
            "samples: 8192 distinct ones cannot come from",
        ),
        (
            ["criterion=bce-nce", "output.sample=9"],
            "unknown setting 'output.sample'; did you mean samples?",
        ),
        (["output.samples=9"], "unknown setting 'output.samples'"),
        (["criterion=bce", "output.rival=0"], "output.rival: 0.0 is not above 0"),
        (["criterion=adaptive"], "output.cutoffs: [] do not ascend"),
    ):
        assert main([*base, "--out", str(tmp_path / "m"), *wrong]) == 1
        err = capsys.readouterr().err
        assert message in err and err.count("\n") == 1, err
    assert not (tmp_path / "m").exists()


def test_numbers_that_are_no_settings_are_refused(tiny, tmp_path, capsys):
    (tmp_path / "c.yaml").write_text("model: causal\nobjective: causal\n")
    base = (
        f"train --conf {tmp_path / 'c.yaml'} --train {tiny / 'train.bin'} --valid "
        f"{tiny / 'valid.bin'}"
    ).split()
    for wrong, message in (
        ("seed=-1", "seed: -1 is too small; give at least 0"),
        (
            "seed=99999999999999999999",
            "seed: 99999999999999999999 is too large; give one below 2^63",
        ),
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
        assert main([*base, "--out", str(tmp_path / "m"), wrong]) == 1, wrong
        err = capsys.readouterr().err
        assert message in err and err.count("\n") == 1, err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("criterion", "options"),
    [("softmax", {"start": "unigram"}), ("bce", {}), ("mse-sigmoid", {}), ("mse", {})],
)
def test_full_criteria_start_from_the_frequencies(criterion, options):
    counts = np.arange(60, 0, -1)
    output = LanguageModel(
        settings("causal", criterion=criterion, output=options), 60, counts
    ).output
    with torch.no_grad():
        found = output.distribution(torch.zeros(1, 16)).exp()[0].numpy()
    # a logistic output of p is a little less than p
    assert found == pytest.approx((counts + 1) / (counts + 1).sum(), rel=0.04)


CONFS = [
    *Path(__file__).parents[3].glob("conf/*.yaml"),
    *Path(__file__).parents[3].glob("egs/**/conf/**/*.yaml"),
]
# the others are of grids, of experiments, of reports, of tasks and of jobs
CONFS = [path for path in CONFS if path.parent.name != "grids" and "model" in read_layers(path)]


@pytest.mark.parametrize(
    "path", CONFS, ids=lambda path: f"{path.parts[-3]}-{path.parts[-2]}-{path.stem}"
)
def test_every_settings_file_makes_a_model(path):
    with torch.device("meta"):  # of more ids than the highest cut-off
        LanguageModel(from_yaml(Settings, path), 210_000, words=SimpleNamespace(size=210_000))
