"""From which biases criteria start."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from lmtools.base.config import build
from lmtools.models.outputs import CRITERIA, Targets
from lmtools.models.outputs.full import FULL
from lmtools.models.outputs.sampled import SAMPLED

SIZE, WIDTH, SAMPLES = 2000, 4, 64
COUNTS = np.maximum(100_000 // np.arange(1, SIZE + 1) ** 2, 1)  # a few words have most
UNIGRAM = torch.from_numpy((COUNTS + 1) / (COUNTS + 1).sum()).float()


def create(name, **output):
    """The criterion as training makes it, over an embedding of zeros."""
    given = {"samples": SAMPLES} | output if name in SAMPLED else output
    config = build(CRITERIA[name].Config, given, prefix="output.")
    shared = nn.Parameter(torch.zeros(SIZE, WIDTH))
    return CRITERIA[name].create(config, shared, WIDTH, Targets(SIZE, counts=COUNTS), False)


@pytest.mark.parametrize("name", FULL)
def test_full_criteria_start_from_the_unigram(name):
    output = create(name)
    wanted = UNIGRAM if name == "mse" else UNIGRAM.log()
    torch.testing.assert_close(output.bias.detach(), wanted)
    # q is the probability itself or, of a logistic output, nearly
    state = torch.zeros(1, WIDTH)
    posterior = output.distribution(state)[0].exp()
    assert (posterior - UNIGRAM).abs().sum() < (0.001 if name == "mse" else 0.2)
    assert output.log_normaliser(state).abs().item() < 0.3


@pytest.mark.parametrize("name", SAMPLED)
def test_nce_starts_one_in_k_sure_that_a_word_is_the_target(name):
    output = create(name)
    u = output.score(output.bias, output.log_expected()).detach()
    if name in ("bce-nce", "ce-nce"):  # s(u) of the one, exp(u) of the other
        odds = u if name == "bce-nce" else u - torch.log1p(-u.exp())
        torch.testing.assert_close(odds, torch.full((SIZE,), -math.log(SAMPLES)))
    elif name == "ce-nce-paper":
        torch.testing.assert_close(u, torch.full((SIZE,), 0.5))  # the middle of what it can be
    torch.testing.assert_close(
        output.distribution(torch.zeros(1, WIDTH))[0].exp(), output.noise, rtol=1e-4, atol=1e-7
    )


@pytest.mark.parametrize("rival", [1.0, 0.25])
def test_outputs_of_mse_stand_for_log_probabilities(rival):
    """Of 4 ids: o = p / (p + rival (1 - p)), up to normalisation of p, and back."""
    output = CRITERIA["mse"](nn.Parameter(torch.zeros(4, 1)), rival)
    p = torch.tensor([0.5, 0.25, 0.125, 0.125])
    bias = output.bias_from_log(p.log() + 3)
    assert bias[1].item() == pytest.approx(0.25 / (0.25 + rival * 0.75))
    torch.testing.assert_close(output.bias_to_log(bias), p.log())
