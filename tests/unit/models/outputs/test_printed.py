"""What the printed forms of sampled cross entropy can learn: Eqs. 9, 13 and 17 without the target
in the sum, Eq. 21 with an exponent between 0 and 1. Expected losses are exact, over all noise sets.
"""

import itertools
import math

import pytest
import torch
from torch import nn

from lmtools.base.config import build as build_config
from lmtools.base.errors import UserError
from lmtools.models.outputs import CRITERIA
from lmtools.models.outputs.noise import LogUniform, Sampler, Uniform
from lmtools.models.outputs.sampled import SAMPLED

K = 3
# all sets that three draws of four ids can be, and in how many orders each comes
SETS = torch.tensor(list(itertools.combinations_with_replacement(range(4), K)))
ORDERS = torch.tensor([len(set(itertools.permutations(one.tolist()))) for one in SETS])
EVERY = torch.arange(4)


def table(name, noise, in_sum=False):
    """A criterion over four ids and one context."""
    output = SAMPLED[name](nn.Parameter(torch.zeros(4, 1)), Sampler(noise, K)).double()
    output.target_in_sum = in_sum
    return output


def states(count):
    return torch.ones(count, 1, dtype=torch.float64)


def expected_loss(output, tenths):
    """The exact expected loss over all noise sets; the next id is c in `tenths`[c] of ten."""
    targets = EVERY.repeat_interleave(torch.tensor(tenths))
    chances = output.noise[SETS].prod(1) * ORDERS
    losses = [output.loss(states(10), targets, drawn) for drawn in SETS]
    return sum(chance * loss for chance, loss in zip(chances, losses, strict=True)) / 10


def minimise(output, tenths, steps=100):
    """The posterior (4,) after so many steps of L-BFGS."""
    optimiser = torch.optim.LBFGS([output.bias], max_iter=steps, line_search_fn="strong_wolfe")

    def closure():
        optimiser.zero_grad()
        loss = expected_loss(output, tenths)
        loss.backward()
        return loss

    optimiser.step(closure)
    return output.log_prob(states(4), EVERY).exp().double()


def largest_excess(tenths, noise):
    """The largest p(A) - P(S meets A) of any proper subset A of the ids."""
    p, q = torch.tensor(tenths) / 10, torch.from_numpy(noise.probability)
    sets = torch.tensor(list(itertools.product([False, True], repeat=4))[1:-1])
    return max((p[a].sum() - 1 + (1 - q[a].sum()) ** K).item() for a in sets)


FALLING = LogUniform([4, 3, 2, 1], excluded=())
EVEN = [3, 3, 2, 2]
SURE = [1, 1, 1, 7]  # of the id that is seldom drawn


def near(p, tenths):
    return p.tolist() == pytest.approx([n / 10 for n in tenths], abs=1e-3)


@pytest.mark.parametrize("name", ["ce-mcs", "ce-is", "ce-cps"])
def test_without_the_target_the_minimum_is_not_the_posterior(name):
    assert largest_excess(EVEN, FALLING) < 0
    output = table(name, FALLING)
    found = minimise(output, EVEN)
    assert (found - torch.tensor(EVEN) / 10).abs().sum() > 0.1
    # there each id's mean share of the sum is its probability
    mass = output.score(output.bias, output.log_expected()).exp().detach()
    share = torch.zeros(4, dtype=torch.float64)
    for drawn, orders in zip(SETS, ORDERS, strict=True):
        one = torch.zeros(4, dtype=torch.float64).index_add(0, drawn, mass[drawn])
        share += orders * output.noise[drawn].prod() * one / one.sum()
    assert near(share, EVEN)
    assert near(minimise(table(name, FALLING, in_sum=True), EVEN), EVEN)


@pytest.mark.parametrize("name", ["ce-mcs", "ce-is", "ce-cps"])
def test_without_the_target_a_sure_word_seldom_drawn_leaves_no_minimum(name):
    assert largest_excess(SURE, FALLING) > 0
    output, losses = table(name, FALLING), []
    for size in (100.0, 1000.0):
        output.bias.data = output.start() + size * torch.tensor([0, 0, 0, 1.0])
        losses.append(expected_loss(output, SURE).item())
    slope = 1 - (1 - FALLING.probability[3]) ** K - 0.7  # P(S meets A) - p(A)
    assert slope < -0.3 and losses[1] < -300
    assert (losses[1] - losses[0]) / 900 == pytest.approx(slope, abs=1e-3)
    assert near(minimise(table(name, FALLING, in_sum=True), SURE), SURE)


def test_compensating_the_noise_alone_overrates_what_is_seldom_drawn():
    output = table("ce-cps", FALLING, in_sum=True)
    output.inflation.fill_(10.0)
    assert near(minimise(output, SURE), SURE)
    output.compensate = "noise"
    found = minimise(output, SURE)
    odds = (found / (1 - found))[3].item() / (0.7 / 0.3)
    assert 1.5 < odds < 10
    assert (found[:3] < 0.1).all()


@pytest.mark.parametrize("in_sum", [True, False])
def test_eq_21_represents_what_is_within_a_factor_of_e_of_the_noise(in_sum):
    found = minimise(table("ce-nce-paper", Uniform([1] * 4, excluded=()), in_sum), EVEN)
    # three draws: the form without the target in the sum is off
    assert near(found, EVEN) == in_sum
    assert (found - torch.tensor(EVEN) / 10).abs().sum() < 0.2


@pytest.mark.parametrize("in_sum", [True, False])
def test_eq_21_changes_no_ratio_by_more_than_e(in_sum):
    output = table("ce-nce-paper", Uniform([1] * 4, excluded=()), in_sum)
    found = minimise(output, SURE)
    assert expected_loss(output, SURE) > -1  # there is a bound
    assert near(found, [10 / (3 + math.e)] * 3 + [10 * math.e / (3 + math.e)])


def test_the_form_is_a_setting_of_cross_entropy_alone():
    for name, kind in SAMPLED.items():
        if name.startswith("bce"):
            with pytest.raises(UserError, match="target_in_sum"):
                build_config(kind.Config, {"target_in_sum": False}, prefix="output.")
        else:
            config = build_config(kind.Config, {}, prefix="output.")
            assert config.target_in_sum == (name != "ce-nce-paper")
    assert "ce-nce-paper" in CRITERIA
