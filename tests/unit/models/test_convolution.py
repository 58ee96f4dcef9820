"""The causal convolution is the definition's, gradients too, and looks at nothing later, however
often time is halved.
"""

import pytest
import torch
from torch.nn import functional as F

from lmtools.models.convolution import best_halvings, causal_convolution, count_multiplications


def tensors(batch, length, channels, kernel, outputs, dtype=torch.float64):
    generator = torch.Generator().manual_seed(batch * length + kernel)
    shapes = (batch, length, channels), (kernel, channels, outputs), (outputs,)
    return [
        torch.randn(shape, generator=generator, dtype=dtype, requires_grad=True) for shape in shapes
    ]


def reference(x, weight, bias):
    """The convolution by torch's own."""
    return F.conv1d(
        F.pad(x.transpose(1, 2), (len(weight) - 1, 0)), weight.permute(2, 1, 0), bias
    ).transpose(1, 2)


@pytest.mark.parametrize("halvings", [0, 1, 2, 3])
def test_the_convolution_and_its_gradients_are_those_of_torch(halvings):
    for kernel in (1, 2, 3, 4, 5, 6, 9):
        for length in (1, 2, 3, 7, 8):
            inputs = tensors(2, length, 3, kernel, 4)
            ours, theirs = causal_convolution(*inputs, halvings), reference(*inputs)
            torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
            grad = torch.randn_like(theirs)
            for mine, other in zip(
                torch.autograd.grad(ours, inputs, grad),
                torch.autograd.grad(theirs, inputs, grad),
                strict=True,
            ):
                torch.testing.assert_close(mine, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("halvings", [0, 2])
def test_float32_loses_little(halvings):
    inputs = tensors(4, 37, 64, 4, 48, torch.float32)
    doubled = [tensor.detach().double().requires_grad_() for tensor in inputs]
    ours, theirs = causal_convolution(*inputs, halvings), reference(*doubled)
    assert (ours - theirs).abs().max() < 2e-6 * theirs.abs().max()
    grad = torch.randn_like(ours)
    for mine, other in zip(
        torch.autograd.grad(ours, inputs, grad),
        torch.autograd.grad(theirs, doubled, grad.double()),
        strict=True,
    ):
        assert mine.dtype == torch.float32 and (mine - other).abs().max() < 2e-6 * other.abs().max()


def test_bfloat16_by_autocast():
    """Products in bfloat16, gradients as precise as theirs; torch's errs as much."""
    inputs = tensors(4, 37, 64, 4, 48, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        ours = causal_convolution(*inputs)
    theirs = reference(*inputs)
    assert ours.dtype == torch.bfloat16 and (ours - theirs).abs().max() < 0.01 * theirs.abs().max()
    grad = torch.randn_like(theirs)
    for mine, other in zip(
        torch.autograd.grad(ours, inputs, grad.bfloat16()),
        torch.autograd.grad(theirs, inputs, grad),
        strict=True,
    ):
        assert mine.dtype == torch.float32 and (mine - other).abs().max() < 0.01 * other.abs().max()


@pytest.mark.parametrize("halvings", [0, 1, 2])
def test_no_halving_looks_ahead(halvings):
    """No output changes by a bit with a later input, though made of differences."""
    x, weight, bias = (tensor.detach() for tensor in tensors(2, 9, 5, 4, 6, torch.float32))
    before = causal_convolution(x, weight, bias, halvings)
    for time in range(9):
        changed = x.clone()
        changed[:, time:] += 1e6 * torch.randn_like(changed[:, time:])
        after = causal_convolution(changed, weight, bias, halvings)
        assert torch.equal(before[:, :time], after[:, :time])
        assert not torch.equal(before[:, time], after[:, time])


def test_how_often_time_is_halved():
    """Where there is much to multiply; never in low precision."""
    assert [count_multiplications(kernel, 1) for kernel in (1, 2, 3, 4, 5, 6)] == [
        1,
        1.5,
        2.5,
        3,
        4,
        4.5,
    ]
    assert [count_multiplications(kernel, 2) for kernel in (1, 2, 4, 6)] == [1, 1.5, 2.25, 3.75]
    cpu = torch.device("cpu")
    assert best_halvings((4, 256, 512), (16, 128, 256), torch.float32, cpu) == 2
    assert best_halvings((2, 256, 512), (16, 128, 256), torch.float32, cpu) == 1
    assert best_halvings((4, 256, 512), (16, 128, 256), torch.bfloat16, cpu) == 0
    for weight, x in (
        ((1, 512, 512), (16, 128, 512)),
        ((4, 16, 32), (16, 128, 16)),
        ((4, 900, 1800), (1, 20, 900)),
    ):
        assert best_halvings(weight, x, torch.float32, cpu) == 0
