"""Noise distributions and expected counts against simulation."""

import numpy as np
import pytest
import torch

from lmtools.base.errors import UserError
from lmtools.models.outputs.noise import (
    NOISES,
    LogUniform,
    Sampler,
    Uniform,
    UnigramNoise,
    log_expected,
)
from lmtools.text.subword import BOS, EOS, MASK, PAD, UNK

COUNTS = [0, 40, 7, 0, 0, 90, 30, 22, 9, 5, 2, 1, 1, 0]
KINDS = {"log-uniform": LogUniform, "uniform": Uniform, "unigram": UnigramNoise}
FALLING = np.arange(14, 0, -1)


def seeded(seed=1):
    return torch.Generator().manual_seed(seed)


def test_every_kind_is_tested():
    assert KINDS.keys() == NOISES.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_draws_follow_the_stated_probabilities(kind):
    noise, n = KINDS[kind](COUNTS), 200_000
    assert noise.probability.sum() == pytest.approx(1, abs=1e-12)
    assert (noise.probability == 0).nonzero()[0].tolist() == [PAD, MASK]
    seen = np.bincount(noise.draw(n, seeded()), minlength=14)
    assert seen[[PAD, MASK]].sum() == 0
    deviation = (seen - n * noise.probability) / np.sqrt(n * noise.probability + 1e-9)
    assert np.abs(deviation[noise.probability > 0]).max() < 4


def test_ids_are_ranked_by_their_counts():
    noise = LogUniform(COUNTS)
    assert noise.order.tolist() == [5, EOS, 6, 7, 8, UNK, 9, 10, 11, 12, BOS, 13]
    rank = np.arange(12)
    assert noise.probability[noise.order] == pytest.approx(
        np.log((rank + 2) / (rank + 1)) / np.log(13)
    )
    assert LogUniform(FALLING, excluded=(PAD, BOS, MASK)).order.tolist() == [
        EOS,
        UNK,
        *range(5, 14),
    ]


def test_the_ends_of_the_unit_interval_are_ranks():
    for noise in (
        LogUniform(np.ones(2_000_003)),
        Uniform(np.ones(2_000_003)),
        UnigramNoise(np.ones(1000)),
    ):
        ranks = noise.ranks(np.array([0.0, np.nextafter(1.0, 0.0)]))
        assert ranks.min() >= 0 and ranks.max() < noise.classes


def test_unigram_is_smoothed_and_refuses_what_cannot_be_recovered():
    noise = UnigramNoise(COUNTS, power=0.5)
    assert noise.probability[5] / noise.probability[13] == pytest.approx(91**0.5)
    with pytest.raises(UserError, match="probability 0"):
        UnigramNoise(COUNTS, power=-1000)


@pytest.mark.parametrize("drawing", ["replacement", "distinct", "tries"])
@pytest.mark.parametrize("kind", KINDS)
def test_expected_counts_against_simulation(kind, drawing):
    sampler, generator, n = Sampler(KINDS[kind](COUNTS), 6, drawing), seeded(), 3000
    seen = torch.zeros(14)
    for _ in range(n):
        ids = sampler.draw(generator)
        seen += torch.bincount(ids, minlength=14)
        assert drawing == "replacement" or len(ids.unique()) == len(ids)
        assert drawing == "tries" or len(ids) == 6
    expected = log_expected(
        torch.from_numpy(sampler.noise.probability), sampler.tries, drawing
    ).exp()
    # 4 standard deviations
    assert torch.allclose(
        seen / n, expected.float(), atol=0.045 if drawing == "replacement" else 0.03
    )
    if drawing != "tries":  # a whole number of draws brings nearly, not just, so many distinct ids
        assert expected.sum().item() == pytest.approx(6, abs=1e-6)


def test_the_mean_number_of_tries_is_nearer_than_that_of_the_set_at_hand():
    sampler, generator, n = Sampler(LogUniform(FALLING), 8, "distinct"), seeded(), 3000
    probability = torch.from_numpy(sampler.noise.probability)
    seen, at_hand, spent = torch.zeros(14), torch.zeros(14), 0
    for _ in range(n):
        ids, tries = sampler.until_distinct(generator)
        seen += torch.bincount(torch.from_numpy(ids), minlength=14)
        at_hand += log_expected(probability, tries, "distinct").exp()
        spent += tries
    mean = log_expected(probability, sampler.tries, "distinct").exp()
    assert (seen / n - mean).abs().max() < 0.03 < (seen - at_hand).abs().max() / n
    assert spent / n == pytest.approx(sampler.tries, rel=0.15)


def test_a_distinct_set_is_the_beginning_of_the_stream():
    noise = LogUniform(FALLING)
    ids, tries = Sampler(noise, 9, "distinct").until_distinct(seeded(3))
    longer = Sampler(noise, 9, "distinct")
    longer.tries = 400.0  # asks for more numbers at a time
    again, same = longer.until_distinct(seeded(3))
    assert ids.tolist() == again.tolist() and tries == same >= 9


@pytest.mark.parametrize("drawing", ["replacement", "distinct", "tries"])
def test_a_set_is_a_function_of_the_generator(drawing):
    sampler = Sampler(LogUniform(np.ones(5000)), 50, drawing)
    first, other = sampler.draw(seeded(7)), sampler.draw(seeded(8))
    assert torch.equal(first, sampler.draw(seeded(7))) and not torch.equal(first, other)
    torch.manual_seed(7)
    assert torch.equal(first, sampler.draw())


@pytest.mark.parametrize(
    ("count", "drawing"), [(12, "distinct"), (13, "tries"), (0, "replacement"), (3, "often")]
)
def test_impossible_draws_are_refused(count, drawing):
    with pytest.raises(UserError, match=r"samples|drawing"):
        Sampler(LogUniform(FALLING), count, drawing)
