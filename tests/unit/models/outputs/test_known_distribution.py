"""Every criterion on a table p(c|x): trained to convergence, its corrected output is the table."""

import numpy as np
import pytest
import torch
from torch import nn

from lmtools.models.outputs import CRITERIA
from lmtools.models.outputs.full import FULL
from lmtools.models.outputs.noise import LogUniform, Sampler
from lmtools.models.outputs.sampled import SAMPLED, BceNce

EXCLUDED = (0, 3, 4)
COUNTS = np.array(
    [[0, 4, 2, 0, 0, 1, 20, 1, 8, 4, 2, 3, 1, 4], [0, 17, 1, 0, 0, 2, 1, 12, 1, 1, 3, 2, 9, 1]]
)
TABLE = torch.from_numpy(COUNTS / 50).float()  # (X, V)
EACH = torch.eye(2)  # the state of each context
STATES = EACH.repeat_interleave(50, 0)
TARGETS = torch.cat([torch.arange(14).repeat_interleave(torch.from_numpy(c)) for c in COUNTS])


def build(name, drawing="replacement", samples=256):
    weight = nn.Parameter(torch.zeros(14, 2))
    if name in FULL:
        return CRITERIA[name](weight)
    return CRITERIA[name](weight, Sampler(LogUniform(COUNTS.sum(0), EXCLUDED), samples, drawing))


def trained(output, steps=400, lr=0.1):
    """The trained criterion, parameters averaged over the last half."""
    output.generator = torch.Generator().manual_seed(0)
    optimiser = torch.optim.Adam(output.parameters(), lr=lr, betas=(0.9, 0.99), foreach=True)
    mean = [torch.zeros_like(p) for p in output.parameters()]
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = lr * min(1, 2 - 1.9 * step / steps)
        loss, count = output(STATES, TARGETS)
        optimiser.zero_grad()
        (loss / count).backward()
        optimiser.step()
        if step >= steps // 2:
            for total, p in zip(mean, output.parameters(), strict=True):
                total += p.detach() / (steps - steps // 2)
    for total, p in zip(mean, output.parameters(), strict=True):
        p.data = total
    return output


def posterior(output):
    """The normalised, corrected posterior (X, V)."""
    return torch.stack([output.log_prob(EACH, torch.full((2,), c)) for c in range(14)], 1).exp()


def raw(output):
    """The model's q (X, V): s(z) of BCE, softmax(z) of CE."""
    z = (EACH @ output.weight.T + output.bias).detach()
    q = (
        z.sigmoid()
        if type(output).__name__.startswith("Bce")
        else z.index_fill(1, torch.tensor(EXCLUDED), -torch.inf).softmax(-1)
    )
    return q.index_fill(1, torch.tensor(EXCLUDED), 0)


def variation(q):
    """The largest total variation from the table."""
    return (q - TABLE).abs().sum(1).max().item() / 2


def uncorrected():
    """What q (X, V) the paper derives for each criterion."""
    noise = torch.from_numpy(LogUniform(COUNTS.sum(0), EXCLUDED).probability).float()
    ratio = (TABLE / noise).nan_to_num()
    return {
        "bce-mcs": TABLE / (TABLE + 256 * noise + 1e-9), "bce-is": TABLE / (TABLE + 1),
        "bce-cps": TABLE / (TABLE + 11 * noise + 1e-9),
        "ce-mcs": ratio / ratio.sum(1, keepdim=True), "ce-cps": ratio / ratio.sum(1, keepdim=True),
        "ce-is": TABLE,
    }  # fmt: skip


# what Eq. 21 prints represents no such table; test_printed.py
@pytest.mark.parametrize("name", [*FULL, *(name for name in SAMPLED if name != "ce-nce-paper")])
def test_the_corrected_posterior_is_the_table(name):
    output = trained(build(name), 700 if name in FULL else 350)
    found = posterior(output)
    assert found.sum(1) == pytest.approx(1, abs=1e-4)
    assert variation(found) < 0.02
    if name in uncorrected():
        predicted = uncorrected()[name]
        assert (raw(output) - predicted).abs().sum(1).max() / 2 < 0.02
        assert (variation(predicted) < 0.02) == (name == "ce-is")
        assert name == "ce-is" or variation(raw(output)) > 0.05
    if name.startswith("bce"):  # normalised by itself
        assert output.log_normaliser(EACH).abs().max() < 0.03


def test_the_table_is_out_of_eq_21s_reach():
    output = trained(build("ce-nce-paper"))
    found, noise = posterior(output), output.noise
    ratio = (found / noise)[:, noise > 0]
    assert (ratio.amax(1) / ratio.amin(1) < 2.7183).all() and ratio.amax() / ratio.amin() > 2
    assert 0.15 < variation(found) < variation(noise.expand_as(TABLE))


def test_with_many_draws_the_printed_sum_comes_near_the_table():
    output = build("ce-mcs")
    output.target_in_sum = False
    assert variation(posterior(trained(output))) < 0.03


@pytest.mark.parametrize("drawing", ["distinct", "tries"])
@pytest.mark.parametrize("name", ["bce-mcs", "bce-nce", "ce-mcs", "ce-nce"])
def test_sets_of_distinct_ids_bring_the_table_too(name, drawing):
    output = trained(build(name, drawing, samples=8), 800)
    assert variation(posterior(output)) < 0.025


@pytest.mark.parametrize("name", ["mse", "mse-sigmoid", "bce"])
def test_down_scaled_rivals_are_undone(name):
    output = trained(CRITERIA[name](nn.Parameter(torch.zeros(14, 2)), rival=0.1), 700)
    assert variation(posterior(output)) < 0.02
    z = (EACH @ output.weight.T + output.bias).detach()
    assert variation(z if name == "mse" else z.sigmoid()) > 0.1


@pytest.mark.parametrize("name", SAMPLED)
def test_training_starts_from_the_noise_distribution(name):
    output = build(name)
    assert posterior(output)[0].numpy() == pytest.approx(output.sampler.noise.probability, abs=1e-5)


def test_hits_must_stay_in_bce():
    class WithoutHits(BceNce):
        def criterion(self, positive, rival, noise_set):
            hits = noise_set.targets[:, None] == noise_set.drawn
            return super().criterion(positive, rival.masked_fill(hits, -torch.inf), noise_set)

    output = WithoutHits(
        nn.Parameter(torch.zeros(14, 2)), Sampler(LogUniform(COUNTS.sum(0), EXCLUDED), 256)
    )
    assert variation(posterior(trained(output))) > 0.03


def test_hits_must_go_from_distinct_sets_in_ce():
    output = build("ce-is", "tries", samples=8)
    # keeps hits; the expected counts below stay those of distinct ids
    output.sampler.drawing = "replacement"
    keep = output.sampler.draw

    def draw(generator):
        output.sampler.drawing = "tries"
        drawn = keep(generator)
        output.sampler.drawing = "replacement"
        return drawn

    output.sampler.draw = draw
    assert variation(posterior(trained(output, 800))) > 0.03
