"""Full training criteria whose terms are one an id: binary cross entropy and mean squared error
(Gao et al. 2021), with posteriors.

The sum over the vocabulary is taken a chunk of rows at a time, gradients with it. `rival` scales
the terms of the ids that are not the target. With o the output that is compared with 1 or 0, the
expected loss of a context has its minimum, for all three alike, at o = p / (p + rival (1 - p));
from there log p = log(o / (1 - o)) + log(rival), put through the logistic function. With rival 1, o
= p.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmtools.base.config import check_numbers
from lmtools.base.grammar import Positive
from lmtools.models.outputs.base import make_matrix
from lmtools.models.outputs.corrected import ALL, Corrected
from lmtools.models.outputs.logits import LinearLoss

SMALLEST = 1e-10  # a linear output at or below it is a log p of -23


@dataclass(frozen=True)
class FullConfig:
    """Weight of the ids that are not the target."""

    rival: Positive = 1.0  # 1 counts all ids alike

    def __post_init__(self):
        check_numbers(self, "output.")


class Pointwise(Corrected):
    """A criterion that is a sum over all ids; with `create` it starts with the words' frequencies
    as far as the states are 0.
    """

    Config = FullConfig
    start = staticmethod(lambda log_p: log_p)  # the bias of a small probability

    @classmethod
    def create(cls, config, shared, width, targets, sparse):
        output = cls(make_matrix(targets.size, width) if shared is None else shared, config.rival)
        output.bias.data.copy_(cls.start(targets.log_unigram))
        return output

    def __init__(self, weight: nn.Parameter, rival: float = 1.0):
        super().__init__(weight)
        self.rival = rival
        nn.init.constant_(self.bias, self.start(torch.tensor(-math.log(len(weight)))))

    def training_loss(self, states, targets):
        return LinearLoss.apply(states, self.weight, self.bias, targets, self.sum_terms)

    def sum_terms(self, z: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return the summed loss of outputs (rows, V) and its derivative; see LinearLoss."""
        hits, hit_slope = self.pointwise(z.gather(1, targets), 1.0)
        losses, slope = self.pointwise(z, 0.0)
        rivals = losses.sum(dtype=torch.float64) - losses.gather(1, targets).sum(
            dtype=torch.float64
        )
        loss = hits.sum(dtype=torch.float64) + self.rival * rivals
        return loss, slope.mul_(self.rival).scatter_(1, targets, hit_slope)

    def link(self, shifted: Tensor) -> Tensor:
        """Return log p of o = s(z): log s(z + log(rival))."""
        return F.logsigmoid(shifted)

    def before(self, ids=ALL):
        return math.log(self.rival)


class Bce(Pointwise):
    """Binary cross entropy (Eqs. 3 and 4) of q = s(z), s the logistic function: log p = log s(z +
    log rival).
    """

    @staticmethod
    def pointwise(z: Tensor, hit: float) -> tuple[Tensor, Tensor]:
        """Return losses of outputs z of targets (`hit` 1) or others (0), and their derivatives."""
        return F.softplus(z) - hit * z, torch.sigmoid(z) - hit


class MseSigmoid(Pointwise):
    """Mean squared error of q = s(z): log p = log s(z + log rival)."""

    @staticmethod
    def pointwise(z, hit):
        q = torch.sigmoid(z)
        return (q - hit).square(), 2 * (q - hit) * q * (1 - q)


class Mse(Pointwise):
    """Mean squared error (Eqs. 1 and 2) of q = z: p = rival z / (1 - z + rival z), and no less than
    SMALLEST where z is not positive.
    """

    start = staticmethod(torch.exp)

    @staticmethod
    def pointwise(z, hit):
        return (z - hit).square(), 2 * (z - hit)

    def link(self, shifted):
        q = shifted.clamp(SMALLEST, 1 - 1e-6)
        return q.log() + math.log(self.rival) - torch.log1p((self.rival - 1) * q)

    def before(self, ids=ALL):
        return 0.0

    def bias_to_log(self, bias):
        return self.link(bias)

    def bias_from_log(self, log_p):
        p = log_p.softmax(0)  # a sum of squares has no place for outputs far above 1
        return p / (p + self.rival * (1 - p))


FULL = {"bce": Bce, "mse": Mse, "mse-sigmoid": MseSigmoid}
