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

from lmtools.device import product_dtype
from lmtools.errors import UserError
from lmtools.outputs.corrected import ALL, Corrected
from lmtools.outputs.softmax import whole_rows
from lmtools.outputs.targets import make_matrix

SMALLEST = 1e-10  # a linear output at or below it is a log p of -23


@dataclass(frozen=True)
class FullConfig:
    """Weight of the ids that are not the target."""

    rival: float = 1.0

    def __post_init__(self):
        if not self.rival > 0:
            raise UserError(f"output.rival: {self.rival} is not above 0; 1 counts all ids alike")


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
        parts = states, self.weight, self.bias, targets
        return LinearPointwise.apply(*parts, self.pointwise, self.rival)

    def link(self, shifted: Tensor) -> Tensor:
        """log p of o = s(z): s(z + log(rival))."""
        return F.logsigmoid(shifted)

    def before(self, ids=ALL):
        return math.log(self.rival)


class Bce(Pointwise):
    """Binary cross entropy (Eqs. 3 and 4) of q = s(z), s the logistic function: log p = log s(z +
    log rival).
    """

    @staticmethod
    def pointwise(z: Tensor, hit: float) -> tuple[Tensor, Tensor]:
        """Losses of outputs z whose ids are the targets (`hit` 1) or not (0), and their
        derivatives.
        """
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


class LinearPointwise(torch.autograd.Function):
    """The summed pointwise loss of z = h W^T + b; memory is one chunk of z and the three gradients,
    whatever N x V is.
    """

    @staticmethod
    @torch.no_grad()
    def forward(ctx, states, weight, bias, targets, pointwise, rival):
        kind = product_dtype(states)
        low_weight = weight.to(kind)
        total = torch.zeros((), dtype=torch.float64, device=states.device)
        gradients = torch.empty_like(states), torch.zeros_like(weight), torch.zeros_like(bias)
        rows = whole_rows(len(weight), states.device)
        for begin in range(0, len(targets), rows):
            some, gold = states[begin : begin + rows].to(kind), targets[begin : begin + rows, None]
            z = (some @ low_weight.T).to(bias.dtype).add_(bias)  # (rows, V)
            own, own_slope = pointwise(z.gather(1, gold), 1.0)
            loss, slope = pointwise(z, 0.0)
            total += own.sum(dtype=torch.float64)
            total += rival * (
                loss.sum(dtype=torch.float64) - loss.gather(1, gold).sum(dtype=torch.float64)
            )
            slope = slope.mul_(rival).scatter_(1, gold, own_slope)
            gradients[2].add_(slope.sum(0))
            slope = slope.to(kind)
            gradients[0][begin : begin + rows] = slope @ low_weight
            gradients[1].add_(slope.T @ some)
        ctx.save_for_backward(*gradients)
        return total.to(bias.dtype)

    @staticmethod
    def backward(ctx, scale):
        return *(scale * gradient for gradient in ctx.saved_tensors), None, None, None


FULL = {"bce": Bce, "mse": Mse, "mse-sigmoid": MseSigmoid}
