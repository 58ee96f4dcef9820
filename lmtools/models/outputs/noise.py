"""Noise distributions over a vocabulary and how words are drawn from them, each with its expected
counts.

Every draw takes its random numbers from one generator on the CPU, in an order that depends on
nothing else: a function of how the generator was seeded (the training loop seeds it by (seed,
step)), on every device the same.
"""

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from lmtools.base.errors import UserError
from lmtools.text.subword import MASK, PAD

NEVER_PREDICTED = (PAD, MASK)


class Noise:
    """A distribution over the ids 0..V-1: `probability` float64 (V,), 0 for `excluded` ids, and
    `draw`.

    `counts` (V,) of each id as a target rank the ids, the most frequent first and
    equal ones by id, so that no noise asks for a vocabulary that is sorted by frequency, or for the
    special ids at one of its ends. An excluded id must never be a target.
    """

    def __init__(
        self, counts: Sequence[int], excluded: Sequence[int] = NEVER_PREDICTED, power: float = 0.75
    ):
        self.counts, self.power = np.asarray(counts, dtype=np.float64), power
        order = np.argsort(-self.counts, kind="stable")
        self.order = order[~np.isin(order, excluded)]  # the id of each rank
        if not len(self.order):
            raise UserError(
                f"noise: all of the {len(self.counts)} ids are excluded; give a larger vocabulary"
            )
        self.probability = np.zeros(len(self.counts))
        self.probability[self.order] = self.rank_probabilities()

    @property
    def classes(self) -> int:
        """Return the number of ids that may be drawn."""
        return len(self.order)

    def rank_probabilities(self) -> np.ndarray:
        raise NotImplementedError

    def ranks(self, uniform: np.ndarray) -> np.ndarray:
        """Return ranks of the distribution from numbers uniform on [0, 1)."""
        raise NotImplementedError

    def draw(self, count: int, generator: torch.Generator | None = None) -> np.ndarray:
        """Return `count` independent ids; `generator` None is torch's own on the CPU."""
        uniform = torch.rand(count, generator=generator, dtype=torch.float64).numpy()
        return self.order[self.ranks(uniform)]


class Uniform(Noise):
    """Noise in which all ids are alike."""

    def rank_probabilities(self):
        return np.full(self.classes, 1 / self.classes)

    def ranks(self, uniform):
        return np.minimum((uniform * self.classes).astype(np.int64), self.classes - 1)


class LogUniform(Noise):
    """P(rank r) = log((r + 2) / (r + 1)) / log(R + 1) of R ranks counted from 0: Zipf's law, drawn
    by formula without a table.
    """

    def rank_probabilities(self):
        rank = np.arange(self.classes)
        return np.log1p(1 / (rank + 1)) / math.log(self.classes + 1)

    def ranks(self, uniform):
        rank = np.exp(uniform * math.log(self.classes + 1)).astype(np.int64) - 1
        return np.clip(rank, 0, self.classes - 1)  # exp may round up to R + 1


class UnigramNoise(Noise):
    """P(id) ~ (count + 1) ** power, drawn in constant time by the alias method (Walker 1977)."""

    def rank_probabilities(self):
        mass = (self.counts[self.order] + 1) ** self.power
        # models hold probabilities in float32
        if not (np.isfinite(mass.sum()) and np.float32(mass.min() / mass.sum()) > 0):
            raise UserError(
                "unigram noise: an id has probability 0 and its posterior could not be recovered;"
                " give a power nearer to 1"
            )
        return mass / mass.sum()

    def ranks(self, uniform):
        keep, alias = self.table
        # one number chooses the column and then the side
        place, rest = np.divmod(uniform * self.classes, 1.0)
        place = np.minimum(place.astype(np.int64), self.classes - 1)
        return np.where(rest < keep[place], place, alias[place])

    @cached_property
    def table(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the alias table of the ranks; a model that only scores needs none."""
        return alias_table(self.probability[self.order])


NOISES = {"log-uniform": LogUniform, "unigram": UnigramNoise, "uniform": Uniform}


def alias_table(probability: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the share (R,) that each column keeps, and the column (R,) that has its rest."""
    share = (probability * len(probability)).tolist()
    keep, alias = np.ones(len(share)), np.arange(len(share))
    small = [i for i, s in enumerate(share) if s < 1]
    large = [i for i, s in enumerate(share) if s >= 1]
    while small and large:
        low, high = small.pop(), large[-1]
        keep[low], alias[low] = share[low], high
        share[high] -= 1 - share[low]
        if share[high] < 1:
            small.append(large.pop())
    return keep, alias  # what is left over is 1 but for rounding


class Sampler:
    """Source of noise sets of `count` ids; `log_expected(probability, tries, drawing)` is how often
    each id is in a set, in the mean.

    `drawing` is one of DRAWINGS. `replacement`: `count` independent draws, repetitions stay; the
    expected count of c is count x q(c). `tries`: a fixed number of draws of which each id stays
    once, sets of about `count` ids; 1 - (1 - q(c)) ** tries is exact. `distinct`: draws go on until
    `count` distinct ids have come; 1 - (1 - q(c)) ** tries with the mean number of tries is close.
    (TensorFlow takes the tries of the set at hand, which depend on what came: further off for the
    frequent ids.)
    """

    def __init__(self, noise: Noise, count: int, drawing: str = "replacement"):
        if drawing not in DRAWINGS:
            raise UserError(f"drawing: {drawing!r} is unknown; known: {', '.join(DRAWINGS)}")
        if count < 1 or (drawing != "replacement" and count >= noise.classes):
            raise UserError(
                f"samples: {count} distinct ones cannot come from {noise.classes} ids; give fewer,"
                " or drawing: replacement"
            )
        self.noise, self.count, self.drawing = noise, count, drawing
        self.tries = float(count)
        if drawing != "replacement":
            self.tries = tries_for(noise.probability, count)
        if drawing == "tries":
            self.tries = float(max(1, round(self.tries)))

    def draw(self, generator: torch.Generator | None = None) -> Tensor:
        """Return a noise set (S,)."""
        if self.drawing == "distinct":
            return torch.from_numpy(self.until_distinct(generator)[0])
        ids = self.noise.draw(int(self.tries), generator)
        return torch.from_numpy(np.unique(ids) if self.drawing == "tries" else ids)

    def until_distinct(self, generator) -> tuple[np.ndarray, int]:
        """Return the first `count` distinct ids in a stream of draws, and the number of draws."""
        stream = self.noise.draw(math.ceil(1.1 * self.tries), generator)
        while len(first := np.sort(np.unique(stream, return_index=True)[1])) < self.count:
            stream = np.concatenate([stream, self.noise.draw(len(stream), generator)])
        return stream[first[: self.count]], int(first[self.count - 1]) + 1


DRAWINGS = ("replacement", "distinct", "tries")


def log_expected(probability: Tensor, tries: float | Tensor, drawing: str) -> Tensor:
    """Return the log of how often ids are in a set of `tries` draws; -inf at probability 0."""
    if drawing == "replacement":
        return (probability * tries).log()
    return (-torch.expm1(tries * torch.log1p(-probability))).log()


def tries_for(probability: np.ndarray, count: int) -> float:
    """Return the number of draws that bring `count` distinct ids, in the mean."""
    miss = np.log1p(-np.minimum(probability[probability > 0], 1 - 1e-12))
    low, high = 0.0, float(count)
    while -np.expm1(high * miss).sum() < count:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if -np.expm1(middle * miss).sum() < count else (low, middle)
    return high
