"""Sparse gradients: clipped and applied like dense ones where they should be, and resumed to the
bit.
"""

import dataclasses
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from toys import ARCH, OBJECTIVE, read_log, settings

from lmtools.base.config import from_yaml, read_layers
from lmtools.base.errors import UserError
from lmtools.models.checkpoint import Progress, load_model, load_training, save_training
from lmtools.models.lm import LanguageModel
from lmtools.models.objectives import OBJECTIVES, count_targets, excluded_ids
from lmtools.models.outputs import CRITERIA
from lmtools.models.outputs.sampled import SAMPLED
from lmtools.models.settings import Optim, Settings
from lmtools.text.corpus import Corpus
from lmtools.text.subword import BOS, EOS, MASK, PAD
from lmtools.train import train
from lmtools.train.optim import OPTIMISERS, build_optimiser, clip_gradients, learning_rate

SIZE = 60
COUNTS = np.arange(SIZE, 0, -1)
SAMPLES = {"samples": 8}


def model(family="causal", criterion="bce-nce", tied=True, **optim):
    torch.manual_seed(0)
    made = settings(
        family,
        criterion=criterion,
        output=SAMPLES if "-" in criterion else {},
        optim=Optim(**{"weight_decay": 0.0, **optim}),
    )
    arch = made.arch | {"tied": tied, "dropout": 0.0}
    return LanguageModel(dataclasses.replace(made, arch=arch), SIZE, COUNTS)


def step(lm, optimiser, seed, longest=0.0):
    torch.manual_seed(seed)
    sentences = [row.tolist() for row in np.random.default_rng(seed).integers(5, SIZE, (4, 6))]
    loss, count = lm(lm.objective.training(sentences, np.random.default_rng(seed), SIZE))
    optimiser.zero_grad(set_to_none=True)
    (loss / count).backward()
    if longest:
        clip_gradients(lm.parameters(), longest)
    optimiser.step()


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(
    ("family", "name"), [*((family, "sgd") for family in OBJECTIVE), ("lstm", "adagrad")]
)
def test_sparse_gradients_change_nothing(family, name, tied):
    """Equal updates, dense and sparse, clipped, embedding and output shared or not."""
    weights = []
    for sparse in (False, True):
        lm = model(family, tied=tied, name=name, lr=0.5, sparse=sparse)
        optimiser = build_optimiser(lm, lm.settings.optim)
        assert len(optimiser.parts) == 1 + sparse
        assert len(lm.sparse_parameters()) == (0 if not sparse else 1 if tied else 2)
        for seed in range(4):
            step(lm, optimiser, seed, longest=0.1)
            assert all(p.grad.is_sparse for p in lm.sparse_parameters())
        weights.append(dict(lm.named_parameters()))
    for name, dense in weights[0].items():
        torch.testing.assert_close(weights[1][name], dense, rtol=1e-4, atol=1e-6)


def test_clipping_takes_the_norm_of_all_gradients():
    dense, sparse = torch.nn.Parameter(torch.zeros(3)), torch.nn.Parameter(torch.zeros(5, 2))
    dense.grad = torch.tensor([3.0, 0.0, 0.0])
    twice = [[1, 1]], torch.tensor([[0.0, 1.0], [0.0, 3.0]])  # one row: of norm 4, not sqrt(10)
    sparse.grad = torch.sparse_coo_tensor(*twice, (5, 2), check_invariants=True)
    unused = torch.nn.Parameter(torch.zeros(1))
    clip_gradients([dense, sparse, unused], 1.0)
    assert dense.grad.tolist() == pytest.approx([0.6, 0, 0])
    assert sparse.grad.to_dense()[1].tolist() == pytest.approx([0, 0.8])
    clip_gradients([dense, sparse], 10.0)
    assert dense.grad[0].item() == pytest.approx(0.6)


def test_adam_moves_only_the_rows_in_use():
    lm = model(name="adam", lr=0.01)
    optimiser = build_optimiser(lm, lm.settings.optim)
    before = lm.trunk.lookup.weight.detach().clone()
    step(lm, optimiser, 1)
    used = lm.trunk.lookup.weight.grad.coalesce().indices()[0]
    moved = (lm.trunk.lookup.weight != before).any(1).nonzero()[:, 0]
    assert moved.tolist() == used.tolist() and len(used) < SIZE
    change = (lm.trunk.lookup.weight.detach() - before)[used].abs()
    # Adam's first step is the learning rate, whatever the gradient
    assert change.max() == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_an_optimiser_goes_on_to_the_bit(tmp_path, name):
    whole = model(name=name, lr=0.01)
    optimiser = build_optimiser(whole, whole.settings.optim)
    for seed in range(3):
        step(whole, optimiser, seed)
    save_training(tmp_path, whole, optimiser, Progress(step=3), "f")
    again = model(name=name, lr=0.01)
    resumed = build_optimiser(again, again.settings.optim)
    assert load_training(tmp_path, again, resumed).step == 3
    for seed in range(3, 6):
        step(whole, optimiser, seed)
        step(again, resumed, seed)
    for a, b in zip(whole.state_dict().values(), again.state_dict().values(), strict=True):
        assert torch.equal(a, b)


def test_a_full_criterion_with_a_sparse_embedding():
    """A table that is also multiplied has a dense gradient; apart, a sparse one."""
    shared, apart = (
        model(criterion="softmax", tied=tied, name="sgd", lr=0.1, sparse=True)
        for tied in (True, False)
    )
    assert shared.sparse_parameters() == []
    assert [p is apart.trunk.lookup.weight for p in apart.sparse_parameters()] == [True]
    for lm in (shared, apart):
        step(lm, build_optimiser(lm, lm.settings.optim), 1, longest=1.0)


RATES = (0.5, 0.5, 0.2, 0.2, 0.05)  # falls while it runs


def moved(name, decay, gradients):
    """A matrix after each update by an optimiser of ours, starting from ones."""
    lm = model(name=name, sparse=False)
    for parameter in lm.parameters():
        parameter.requires_grad_(False)
    lm.matrix = torch.nn.Parameter(torch.ones(gradients[0].shape))
    optimiser, course = build_optimiser(lm, Optim(name=name, weight_decay=decay, momentum=0.9)), []
    for rate, gradient in zip(RATES, gradients, strict=True):
        for group in optimiser.param_groups:
            group["lr"] = rate
        lm.matrix.grad = torch.from_numpy(gradient).float()
        optimiser.step()
        course.append(lm.matrix.detach().double().numpy().copy())
    return course


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_nag_is_the_plain_recursion(decay):
    """As Sutskever et al. (2013): the model holds the point theta + mu v."""
    gradients = list(np.random.default_rng(0).normal(size=(len(RATES), 3, 2)))
    point, velocity, last = np.ones((3, 2)), np.zeros((3, 2)), RATES[0]
    for found, rate, gradient in zip(moved("nag", decay, gradients), RATES, gradients, strict=True):
        theta = point * (1 - rate * decay) - 0.9 * velocity * rate / last
        velocity, last = 0.9 * velocity * rate / last - rate * gradient, rate
        point = theta + velocity + 0.9 * velocity
        np.testing.assert_allclose(found, point, rtol=1e-5)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adagrad_divides_by_the_root_of_one_and_all_squares(decay):
    gradients = list(np.random.default_rng(0).normal(size=(len(RATES), 3, 2)))
    point = np.ones((3, 2))
    for n, (found, rate) in enumerate(
        zip(moved("adagrad", decay, gradients), RATES, strict=True), 1
    ):
        point = point * (1 - rate * decay) - rate * gradients[n - 1] / np.sqrt(
            1 + np.square(gradients[:n]).sum(0)
        )
        np.testing.assert_allclose(found, point, rtol=1e-5)


def test_nag_takes_a_first_gradient_at_any_step():
    """A rare cluster of an adaptive softmax has no gradient until one of its words comes."""
    early, late = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    optimiser = OPTIMISERS["nag"]([{"params": [early, late]}], Optim(lr=0.1, momentum=0.9))
    for count in range(2):
        early.grad, late.grad = torch.ones(2), torch.ones(2) if count else None
        optimiser.step()
    assert late.tolist() == pytest.approx([1 - 0.19] * 2)
    assert early.tolist() == pytest.approx([1 - 0.19 - 0.271] * 2)


def test_nag_needs_dense_gradients():
    assert model(name="nag").sparse_parameters() == []
    with pytest.raises(
        UserError, match=r"optim.sparse: nag moves every row .* give optim.sparse=false"
    ):
        build_optimiser(model(name="nag", sparse=True), Optim(name="nag"))


def test_the_learning_rate_of_a_plateau():
    optim = Optim(lr=0.8, warmup=4, decay="plateau", shrink=0.25)
    assert [learning_rate(optim, step, 100) for step in (0, 1, 3, 4, 99)] == pytest.approx(
        [0.2, 0.4, 0.8, 0.8, 0.8]
    )
    assert [learning_rate(optim, step, 100, shrunk=2) for step in (1, 50)] == pytest.approx(
        [0.025, 0.05]
    )
    assert learning_rate(dataclasses.replace(optim, decay="none"), 50, 100, shrunk=2) == 0.8


def test_the_learning_rate_of_an_inverse_root():
    """Vaswani et al. 2017: d^-0.5 min(n^-0.5, n warmup^-1.5) at step n, here by its highest."""
    optim = Optim(lr=0.8, warmup=4, decay="inverse-root")
    rates = [learning_rate(optim, n - 1, total=20) for n in (1, 2, 4, 9, 16, 64)]
    assert rates == pytest.approx([0.2, 0.4, 0.8, 0.8 * 2 / 3, 0.4, 0.2])
    plain = [min(n**-0.5, n * 4**-1.5) for n in (1, 2, 4, 9, 16, 64)]
    assert rates == pytest.approx([0.8 * 4**0.5 * rate for rate in plain])
    without = dataclasses.replace(optim, warmup=0)
    assert [learning_rate(without, n - 1, 20) for n in (1, 4)] == pytest.approx([0.8, 0.4])


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
    losses = [row["valid_loss"] for row in read_log(tmp_path / "lm", "valid_loss")]
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
    told, size = from_yaml(Settings, path), 210_000  # more ids than the highest cut-off
    told = replace(told, output=CRITERIA[told.criterion].complete(told.output, size))
    with torch.device("meta"):
        LanguageModel(told, size, words=SimpleNamespace(size=size))
