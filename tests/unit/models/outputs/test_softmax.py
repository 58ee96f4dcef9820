"""The full softmax against torch's own cross entropy, in double precision."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from lmtools.base.config import build
from lmtools.base.errors import UserError
from lmtools.models.outputs import Targets, logits
from lmtools.models.outputs.logits import ROWS, add_product
from lmtools.models.outputs.softmax import Softmax, SoftmaxConfig


@pytest.fixture(params=[1 << 20, 40, 7])
def chunk(request, monkeypatch):
    """Chunk sizes down to less than one row."""
    monkeypatch.setattr(logits, "CHUNK", request.param)
    monkeypatch.setattr(logits, "ROWS", 1)


def case(n=13, dim=6, vocabulary=29, dtype=torch.float64):
    torch.manual_seed(0)
    output = Softmax(nn.Parameter(torch.randn(vocabulary, dim, dtype=dtype)))
    output.bias = nn.Parameter(torch.randn(vocabulary, dtype=dtype))
    return (
        output,
        torch.randn(n, dim, dtype=dtype, requires_grad=True),
        torch.randint(vocabulary, (n,)),
    )


def test_loss_and_gradients_equal_autograd_of_the_plain_formula(chunk):
    output, states, targets = case()
    loss, count = output(states, targets)
    assert count == 13
    ours = torch.autograd.grad(3 * loss, [states, output.weight, output.bias])
    plain = F.cross_entropy(F.linear(states, output.weight, output.bias), targets, reduction="sum")
    theirs = torch.autograd.grad(3 * plain, [states, output.weight, output.bias])
    assert loss.item() == pytest.approx(plain.item(), rel=1e-6)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=2e-5, atol=2e-6)  # logits pass through float32


@pytest.mark.parametrize("smoothing", [0.1, 0.5])
def test_smoothed_loss_and_gradients_equal_those_of_torch(chunk, smoothing):
    output, states, targets = case()
    output.smoothing = smoothing
    loss, _ = output(states, targets)
    ours = torch.autograd.grad(3 * loss, [states, output.weight, output.bias])
    logits = F.linear(states, output.weight, output.bias)
    plain = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    theirs = torch.autograd.grad(3 * plain, [states, output.weight, output.bias])
    assert loss.item() == pytest.approx(plain.item(), rel=1e-6)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=2e-5, atol=2e-6)
    with torch.no_grad():  # validation measures the target alone
        exact = F.cross_entropy(logits.float(), targets, reduction="sum")
        assert output(states, targets)[0].item() == pytest.approx(exact.item(), rel=1e-5)


def test_smoothing_by_hand():
    """Two ids with p = 3/4 and 1/4: 0.9 log(4/3) + 0.1 log(4) of the target 0, at 0.2."""
    config = build(SoftmaxConfig, {"smoothing": 0.2}, prefix="output.")
    matrix = nn.Parameter(torch.zeros(2, 1))
    output = Softmax.create(config, matrix, 1, Targets(2), sparse=False)
    output.bias.data = torch.tensor([3.0, 1.0]).log()
    loss, _ = output(torch.zeros(1, 1), torch.tensor([0]))
    assert loss.item() == pytest.approx(0.9 * math.log(4 / 3) + 0.1 * math.log(4))
    loss.backward()
    assert output.bias.grad.tolist() == pytest.approx([0.75 - 0.9, 0.25 - 0.1])
    for wrong, message in ((1.0, "too large"), (-0.1, "too small")):
        with pytest.raises(UserError, match=rf"output\.smoothing: {wrong} .*{message}"):
            build(SoftmaxConfig, {"smoothing": wrong}, prefix="output.")


@pytest.mark.parametrize("columns", [5, 29, 4096])
def test_log_prob_equals_log_softmax(chunk, columns, monkeypatch):
    monkeypatch.setattr(logits, "tile", lambda vocabulary, device: (4, min(columns, vocabulary)))
    output, states, targets = case(dtype=torch.float32)
    with torch.inference_mode():
        ours = output.log_prob(states, targets)
    theirs = F.linear(states, output.weight, output.bias).log_softmax(-1)[torch.arange(13), targets]
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_without_gradients_the_loss_is_the_same(chunk):
    output, states, targets = case(dtype=torch.float32)
    with torch.no_grad():
        loss, _ = output(states, targets)
    assert loss.item() == pytest.approx(output(states, targets)[0].item(), rel=1e-5)


def test_large_logits_do_not_overflow():
    output, states, targets = case(dtype=torch.float32)
    loss, _ = output(states * 1e4, targets)
    assert torch.isfinite(loss)


def test_log_prob_is_what_is_unnormalised_less_the_normaliser():
    output, states, targets = case(dtype=torch.float32)
    with torch.inference_mode():
        torch.testing.assert_close(
            output.unnormalised(states, targets) - output.log_normaliser(states),
            output.log_prob(states, targets),
        )


@pytest.mark.parametrize("rows", [2, 5, 100, ROWS, ROWS + 1, 400])
def test_a_product_is_added_with_the_bits_of_the_whole_one(rows):
    torch.manual_seed(rows)
    slope, states = torch.randn(rows, 9000), torch.randn(rows, 96)
    total = torch.randn(9000, 96)
    expected = total + slope.T @ states
    add_product(total, slope.T, states)
    assert torch.equal(total, expected)
    low = total.clone()
    add_product(low, slope.T.bfloat16(), states.bfloat16())
    assert torch.equal(low, total + slope.T.bfloat16() @ states.bfloat16())
