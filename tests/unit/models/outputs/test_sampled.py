"""Losses and gradients of the criteria against the plain formulas in double precision; what they
touch, and what they depend on.
"""

import itertools
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lmtools.models.outputs import logits
from lmtools.models.outputs.full import FULL
from lmtools.models.outputs.noise import LogUniform, Sampler, log_expected
from lmtools.models.outputs.sampled import SAMPLED, SampledCe

V, D, N, K = 30, 5, 17, 12
CE = [name for name, kind in SAMPLED.items() if issubclass(kind, SampledCe)]


def build(
    name, drawing="replacement", dtype=torch.float64, sparse=False, size=V, samples=K, **options
):
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(size, D, dtype=dtype))
    if name in FULL:
        return FULL[name](weight, **options)
    output = SAMPLED[name](
        weight, Sampler(LogUniform(range(size, 0, -1)), samples, drawing), sparse
    ).to(dtype)
    nn.init.normal_(output.bias)
    return output


def seeded(output, seed: int):
    """The output layer, whose noise is drawn from a fresh generator."""
    output.generator = torch.Generator().manual_seed(seed)
    return output


def batch(dtype=torch.float64, size=V, count=N):
    generator = torch.Generator().manual_seed(5)
    return torch.randn(count, D, dtype=dtype, generator=generator).requires_grad_(), torch.randint(
        5, size, (count,), generator=generator
    )


def plain(name, output, states, targets, drawn, expected):
    """The paper's loss summed over targets, from all of z (N, V) and draws (V,)."""
    z, times = states @ output.weight.T + output.bias, torch.bincount(drawn, minlength=V).double()
    family, kind = name.split("-", 1)
    compensation = output.inflation.item()
    assert compensation == pytest.approx(28 / K)  # of the 30 ids two are excluded
    if family == "bce":
        q = torch.sigmoid(z) if kind != "nce" else z.exp() / (z.exp() + expected)
        factor = {"mcs": times, "nce": times, "is": times / expected, "cps": compensation * times}[
            kind
        ]
        own = q.gather(1, targets[:, None])[:, 0]
        rivals = torch.where(times > 0, factor * torch.log(1 - q), 0.0)
        return -(own.log() + rivals.sum(1)).sum()
    mass = {
        "mcs": z.exp(),
        "cps": compensation * z.exp(),
        "is": z.exp() / expected,
        "nce": z.exp() / (z.exp() + expected),
        "nce-paper": (z.exp() / (z.exp() + expected)).exp(),
    }[kind]
    if not output.target_in_sum:
        above = (z.exp() if kind == "is" else mass / (compensation if kind == "cps" else 1)).gather(
            1, targets[:, None]
        )[:, 0]
        return -(above / torch.where(times > 0, times * mass, 0.0).sum(1)).log().sum()
    hit = F.one_hot(targets, V)
    times = (
        (times + hit)
        if output.sampler.drawing == "replacement"
        else torch.maximum(times.expand(N, V), hit.double())
    )
    above = (z.exp() if kind == "cps" else mass).gather(1, targets[:, None])[:, 0]
    return -(above / torch.where(times > 0, times * mass, 0.0).sum(1)).log().sum()


@pytest.mark.parametrize("drawing", ["replacement", "distinct", "tries"])
@pytest.mark.parametrize(
    ("name", "in_sum"), [*((name, None) for name in SAMPLED), *itertools.product(CE, (True, False))]
)
def test_loss_and_gradients_equal_autograd_of_the_plain_formula(name, in_sum, drawing):
    output, (states, targets) = build(name, drawing), batch()
    if in_sum is not None:
        output.target_in_sum = in_sum
    drawn = output.sampler.draw(torch.Generator().manual_seed(2))
    assert torch.isin(drawn, targets).any()  # accidental hits
    loss, count = seeded(output, 2)(states, targets)
    expected = log_expected(output.noise, output.tries, drawing).exp().where(output.noise > 0, 1.0)
    theirs = plain(name, output, states, targets, drawn, expected)
    assert count == N and loss.item() == pytest.approx(theirs.item(), rel=1e-9)
    inputs = [states, output.weight, output.bias]
    for a, b in zip(
        torch.autograd.grad(3 * loss, inputs), torch.autograd.grad(3 * theirs, inputs), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("in_sum", [True, False])
@pytest.mark.parametrize("drawing", ["replacement", "distinct"])
def test_ce_cps_has_the_gradients_of_ce_mcs(drawing, in_sum):
    states, targets = batch()
    losses, gradients = [], []
    for name in ("ce-mcs", "ce-cps"):
        output = build(name, drawing)
        output.target_in_sum = in_sum
        losses.append(seeded(output, 2)(states, targets)[0])
        gradients.append(torch.autograd.grad(losses[-1], [states, output.weight, output.bias]))
    for a, b in zip(*gradients, strict=True):
        assert torch.equal(a, b)
    assert (losses[1] - losses[0]).item() == pytest.approx(N * math.log(28 / K))


@pytest.mark.parametrize("chunk", [1 << 20, 70, 3])
@pytest.mark.parametrize("rival", [1.0, 0.2])
@pytest.mark.parametrize("name", FULL)
def test_full_criteria_equal_autograd_of_the_plain_formula(name, rival, chunk, monkeypatch):
    monkeypatch.setattr(logits, "CHUNK", chunk)
    monkeypatch.setattr(logits, "ROWS", 1)
    output, (states, targets) = build(name, rival=rival), batch()
    loss, _ = output(states, targets)
    z, hit = states @ output.weight.T + output.bias, F.one_hot(targets, V).double()
    q = z if name == "mse" else z.sigmoid()
    term = -(hit * q.log() + (1 - hit) * (1 - q).log()) if name == "bce" else (q - hit).square()
    theirs = ((hit + rival * (1 - hit)) * term).sum()
    assert loss.item() == pytest.approx(theirs.item(), rel=1e-9)
    inputs = [states, output.weight, output.bias]
    for a, b in zip(
        torch.autograd.grad(3 * loss, inputs), torch.autograd.grad(3 * theirs, inputs), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("columns", [1, 7, 4096])
@pytest.mark.parametrize("name", [*FULL, *SAMPLED])
def test_log_prob_equals_the_correction_over_the_whole_vocabulary(name, columns, monkeypatch):
    monkeypatch.setattr(
        "lmtools.models.outputs.logits.tile", lambda vocabulary, device: (4, columns)
    )
    output, (states, targets) = build(name, dtype=torch.float32), batch(torch.float32)
    z = (states @ output.weight.T + output.bias).detach()
    if name == "mse":
        scores = z.clamp(1e-10, 1 - 1e-6).log()
    elif name in FULL:
        scores = F.logsigmoid(z)
    else:
        expected = (K * torch.from_numpy(output.sampler.noise.probability)).float().log()
        scores = {
            "bce-mcs": z + expected, "bce-cps": z + expected + math.log(28 / K),
            "ce-mcs": z + expected, "ce-cps": z + expected,
            "ce-nce": F.logsigmoid(z - expected) + expected,
            "ce-nce-paper": torch.sigmoid(z - expected) + expected,
        }.get(name, z).clone()  # fmt: skip
        scores[:, [0, 4]] = -torch.inf
    if output.link is None:  # what scores with a weight and a bias needs nothing else
        with torch.no_grad():
            biased = F.linear(states, output.weight, output.posterior_bias())
        torch.testing.assert_close(biased.log_softmax(-1)[:, 5:], scores.log_softmax(-1)[:, 5:])
    rows = torch.arange(N)
    torch.testing.assert_close(
        output.unnormalised(states, targets), scores[rows, targets], rtol=1e-4, atol=1e-4
    )
    torch.testing.assert_close(
        output.log_normaliser(states), scores.logsumexp(-1), rtol=1e-4, atol=1e-4
    )
    torch.testing.assert_close(
        output.log_prob(states, targets),
        scores.log_softmax(-1)[rows, targets],
        rtol=1e-4,
        atol=1e-4,
    )
    with torch.no_grad():
        assert output(states, targets)[0].item() == pytest.approx(
            -scores.log_softmax(-1)[rows, targets].sum().item(), rel=1e-4
        )


@pytest.mark.parametrize("name", SAMPLED)
def test_sparse_gradients_are_the_dense_ones_of_the_rows_in_use(name):
    states, targets = batch()
    gradients = []
    for sparse in (False, True):
        output = build(name, sparse=sparse)
        seeded(output, 2)(states, targets)[0].backward()
        gradients.append(output.weight.grad)
    assert gradients[1].is_sparse and gradients[1]._nnz() <= N + K
    torch.testing.assert_close(gradients[1].to_dense(), gradients[0])


class Largest(TorchDispatchMode):
    """Notes the size of the largest tensor that any operation makes."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        sizes = [
            t._nnz() * D if t.is_sparse else t.numel()
            for t in tree_leaves(result)
            if isinstance(t, torch.Tensor)
        ]
        # the parameter itself
        own = function.name() in ("aten::detach", "aten::alias", "aten::t", "aten::view")
        self.elements = max([self.elements, *([] if own else sizes)])
        return result


@pytest.mark.parametrize("name", SAMPLED)
def test_nothing_is_as_large_as_the_weight(name, size=400_000):
    output = build(name, dtype=torch.float32, sparse=True, size=size, samples=64)
    states, targets = batch(torch.float32, size)
    with Largest() as largest:
        output(states, targets)[0].backward()
    assert max(N * 64, size) == largest.elements < D * size  # the bias's gradient
    with Largest() as largest:
        output.unnormalised(states.detach(), targets)
    assert largest.elements <= N * D


@pytest.mark.parametrize("name", SAMPLED)
def test_a_step_is_a_function_of_the_generator(name):
    output, (states, targets) = build(name, dtype=torch.float32), batch(torch.float32)
    first, same, other = (seeded(output, seed)(states, targets)[0] for seed in (1, 1, 2))
    assert first == same != other
    output.generator = None
    torch.manual_seed(1)
    assert output(states, targets)[0] == first  # the loop seeds torch's own generator in each step


@pytest.mark.parametrize("name", [*FULL, *SAMPLED])
def test_large_outputs_and_sets_of_hits_do_not_overflow(name):
    output, (states, _) = build(name, "tries", dtype=torch.float32, samples=2), batch(torch.float32)
    targets = (
        output.sampler.draw(torch.Generator().manual_seed(1))[:1].expand(N)
        if name in SAMPLED
        else torch.full((N,), 7)
    )
    for scale in (1, 1e4):
        output.zero_grad()
        loss, _ = seeded(output, 1)(states, targets)
        loss.backward()
        assert loss.isfinite() and output.weight.grad.isfinite().all()
        assert output.log_prob(states.detach() * scale, targets).isfinite().all()


@pytest.mark.parametrize("name", SAMPLED)
def test_what_the_correction_needs_is_saved_with_the_weights(name):
    output, (states, targets) = build(name, "tries"), batch()
    other = SAMPLED[name](
        nn.Parameter(torch.zeros(V, D)), Sampler(LogUniform(range(V), excluded=()), 3, "tries")
    ).double()
    other.load_state_dict(output.state_dict())
    assert torch.equal(other.log_prob(states, targets), output.log_prob(states, targets))


@pytest.mark.parametrize("name", SAMPLED)
def test_bfloat16_products_train(name):
    output, (states, targets) = build(name, dtype=torch.float32), batch(torch.float32)
    exact, _ = seeded(output, 1)(states, targets)
    with torch.autocast("cpu", torch.bfloat16):
        loss, _ = seeded(output, 1)(states, targets)
        with torch.no_grad():
            assert output(states, targets)[0].isfinite()
    loss.backward()
    assert loss.item() == pytest.approx(exact.item(), rel=0.02)
    assert output.weight.grad.isfinite().all()
