"""Adaptive softmax against torch's."""

import pytest
import torch
from torch import nn

from lmtools.base.errors import UserError
from lmtools.models.outputs.softmax import Adaptive


def pair(width=16, size=50, cutoffs=(10, 25)):
    """Ours and torch's with the same weights, biases of the clusters 0."""
    torch.manual_seed(0)
    ours = Adaptive(width, size, cutoffs)
    theirs = nn.AdaptiveLogSoftmaxWithLoss(
        width, size, list(cutoffs), div_value=4.0, head_bias=True
    )
    theirs.head.weight, theirs.head.bias = ours.head.weight, ours.head.bias
    nn.init.normal_(ours.head.bias)
    for tail, projection, (down, up) in zip(ours.tails, ours.projections, theirs.tail, strict=True):
        down.weight, up.weight = projection.weight, tail.weight
    return ours, theirs


def test_loss_gradients_and_log_prob_equal_torchs():
    ours, theirs = pair()
    states, targets = torch.randn(40, 16, requires_grad=True), torch.randint(50, (40,))
    loss, count = ours(states, targets)
    expected = theirs(states, targets)
    parameters = [states, *theirs.parameters()]
    assert loss.item() == pytest.approx(-expected.output.sum().item(), rel=1e-5)
    for a, b in zip(
        torch.autograd.grad(loss, parameters),
        torch.autograd.grad(-expected.output.sum(), parameters),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    with torch.inference_mode():
        torch.testing.assert_close(
            ours.log_prob(states, targets), expected.output, rtol=1e-4, atol=1e-5
        )
        assert ours(states, targets)[0].item() == pytest.approx(loss.item(), rel=1e-5)
        assert count == 40
        whole = torch.stack(
            [ours.log_prob(states, torch.full((40,), c)) for c in range(50)]
        ).logsumexp(0)
    assert whole.abs().max() < 1e-4


def test_a_batch_without_rare_words_trains():
    ours, _ = pair()
    loss, _ = ours(torch.randn(3, 16), torch.tensor([0, 9, 4]))
    loss.backward()
    assert loss.isfinite() and ours.tails[0].weight.grad is None


@pytest.mark.parametrize(
    ("size", "cutoffs"),
    [(7_743, [500, 2_500]), (33_280, [2_000, 10_000]), (900, [60, 300]), (20, [1, 7]), (3, [1])],
)
def test_cutoffs_follow_from_the_number_of_ids(size, cutoffs):
    assert Adaptive.complete({"divide": 2}, size) == {"divide": 2, "cutoffs": cutoffs}
    assert Adaptive.complete({"cutoffs": [9]}, size) == {"cutoffs": [9]}
    Adaptive(16, size, cutoffs)


@pytest.mark.parametrize("cutoffs", [(), (0, 10), (10, 10), (10, 50)])
def test_cutoffs_that_do_not_ascend_are_refused(cutoffs):
    with pytest.raises(UserError, match="cutoffs"):
        Adaptive(16, 50, cutoffs)
