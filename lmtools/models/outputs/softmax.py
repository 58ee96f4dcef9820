"""The full softmax over the vocabulary, trained with cross entropy."""

from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from lmtools.base.config import LATE, check_choices, check_numbers
from lmtools.base.errors import UserError
from lmtools.models.outputs.base import make_matrix
from lmtools.models.outputs.corrected import Corrected
from lmtools.models.outputs.logits import LinearLoss


@dataclass(frozen=True)
class SoftmaxConfig:
    """Distribution that training starts from, as far as the states are 0, and that it learns."""

    # or unigram: the words' frequencies, as sampled criteria start from their noise; much the
    # better over large vocabularies, but the recipes' figures are of uniform
    start: str = "uniform"
    # label smoothing (Szegedy et al. 2016): training sees each target with this share of the
    # uniform distribution over all ids; validation measures the target alone
    smoothing: float = field(default=0.0, metadata=LATE)

    def __post_init__(self):
        check_numbers(self, "output.")
        if self.smoothing >= 1:
            raise UserError(
                f"output.smoothing: {self.smoothing} leaves nothing of the targets; give less"
                " than 1, as 0.1"
            )
        check_choices(self, "output.", start=("uniform", "unigram"))


class Softmax(Corrected):
    """p(w|h) = softmax(h W^T + b), trained with cross entropy (Eqs. 5 and 6 of Gao et al. 2021);
    `weight` (V, D) may be shared with the input embedding. Nothing corrects its logits.
    """

    Config = SoftmaxConfig
    smoothing = 0.0

    @classmethod
    def create(cls, config, shared, width, targets, sparse):
        output = cls(make_matrix(targets.size, width) if shared is None else shared)
        if config.start == "unigram":
            output.bias.data.copy_(targets.log_unigram)
        output.smoothing = config.smoothing
        return output

    def training_loss(self, states, targets):
        criterion = cross_entropy
        if self.smoothing:
            criterion = partial(smoothed_cross_entropy, smoothing=self.smoothing)
        return LinearLoss.apply(states, self.weight, self.bias, targets, criterion)


def cross_entropy(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the summed cross entropy of logits (rows, V), and softmax - one-hot in them."""
    logits -= logits.amax(-1, keepdim=True)
    picked = logits.gather(1, targets)
    normaliser = logits.exp_().sum(-1, keepdim=True)
    loss = (normaliser.log() - picked).sum(dtype=torch.float64)
    return loss, logits.div_(normaliser).scatter_add_(1, targets, -torch.ones_like(picked))


def smoothed_cross_entropy(
    logits: Tensor, targets: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Return the same, with (1 - smoothing) one-hot + smoothing / V; see LinearLoss."""
    share = smoothing / logits.shape[-1]
    logits -= logits.amax(-1, keepdim=True)
    picked = logits.gather(1, targets)
    moved = smoothing * picked.sum(dtype=torch.float64) - share * logits.sum(dtype=torch.float64)
    loss, slope = cross_entropy(logits, targets)
    return loss + moved, slope.sub_(share).scatter_add_(
        1, targets, torch.full_like(picked, smoothing)
    )
