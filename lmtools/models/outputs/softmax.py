"""The full softmax over the vocabulary, trained with cross entropy."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lmtools.base.config import check_choices
from lmtools.models.outputs.corrected import Corrected
from lmtools.models.outputs.logits import LinearLoss
from lmtools.models.outputs.targets import make_matrix


@dataclass(frozen=True)
class SoftmaxConfig:
    """Distribution that training starts from, as far as the states are 0."""

    # or unigram: the words' frequencies, as sampled criteria start from their noise; much the
    # better over large vocabularies, but the recipes' figures are of uniform
    start: str = "uniform"

    def __post_init__(self):
        check_choices(self, "output.", start=("uniform", "unigram"))


class Softmax(Corrected):
    """p(w|h) = softmax(h W^T + b), trained with cross entropy (Eqs. 5 and 6 of Gao et al. 2021);
    `weight` (V, D) may be shared with the input embedding. Nothing corrects its logits.
    """

    Config = SoftmaxConfig

    @classmethod
    def create(cls, config, shared, width, targets, sparse):
        output = cls(make_matrix(targets.size, width) if shared is None else shared)
        if config.start == "unigram":
            output.bias.data.copy_(targets.log_unigram)
        return output

    def training_loss(self, states, targets):
        return LinearLoss.apply(states, self.weight, self.bias, targets, cross_entropy)


def cross_entropy(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the summed cross entropy of logits (rows, V) and its derivative, softmax - one-hot,
    which overwrites them; see LinearLoss.
    """
    logits -= logits.amax(-1, keepdim=True)
    picked = logits.gather(1, targets)
    normaliser = logits.exp_().sum(-1, keepdim=True)
    loss = (normaliser.log() - picked).sum(dtype=torch.float64)
    return loss, logits.div_(normaliser).scatter_add_(1, targets, -torch.ones_like(picked))
