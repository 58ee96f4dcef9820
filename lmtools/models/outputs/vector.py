"""A learnt score in place of a prediction: the sum over a sentence's positions of h . w + b, which
is linear in the sum of its states. Nothing is normalised, and no pass over the vocabulary is made.

Training from N-best lists (lmtools.train.lists) learns it; of text alone nothing can be learnt.
"""

from dataclasses import dataclass

import torch
from torch import nn

from lmtools.base.errors import UserError
from lmtools.models.outputs.base import OutputLayer

NO_PREDICTION = (
    "criterion vector: scores whole sentences and predicts no tokens; train it from N-best lists"
    " (lists.loss), and use it with lmtools score"
)


@dataclass(frozen=True)
class VectorConfig:
    """Nothing is to be set."""


class Vector(OutputLayer):
    """`direction` (D,) and `offset` (), both 0 at first: every sentence scores 0."""

    Config = VectorConfig
    weight = None
    whole = True

    @classmethod
    def create(cls, config, shared, width, targets, sparse):
        return cls(width)

    def __init__(self, width: int):
        super().__init__()
        self.direction = nn.Parameter(torch.zeros(width))
        self.offset = nn.Parameter(torch.zeros(()))

    def unnormalised(self, states, targets):
        """Return the part of each position, whatever its target."""
        return states.float() @ self.direction + self.offset

    def log_normaliser(self, states):
        return states.new_zeros(len(states), dtype=torch.float32)

    def traced_log_prob(self, states, targets):
        return self.unnormalised(states, targets)

    def training_loss(self, states, targets):
        raise UserError(NO_PREDICTION)

    def distribution(self, states):
        raise UserError(NO_PREDICTION)

    def rows(self):
        return {}
