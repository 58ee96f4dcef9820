"""Interface of output layers: states in; losses, log-probabilities and distributions out.

A new criterion is a class in one of the files of lmtools.models.outputs and a name in CRITERIA.

Targets are predicted ids as an output layer knows them: counts rank the ids for log-uniform noise
and adaptive clusters, so that no vocabulary has to be sorted.
"""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from lmtools.base.errors import UserError
from lmtools.models.device import product_dtype


@dataclass(frozen=True, eq=False)
class Targets:
    """`size` ids, of which those in `never` are no targets, and how often each is one: counts
    (size,).

    Without counts all ids are alike: for a model whose weights, and what it made of the counts with
    them, are loaded afterwards.
    """

    size: int
    never: Sequence[int] = ()
    counts: np.ndarray | None = None

    @property
    def frequencies(self) -> np.ndarray:
        """Return the counts (size,), all 1 where there are none."""
        return np.ones(self.size) if self.counts is None else self.counts

    @property
    def log_unigram(self) -> torch.Tensor:
        """Return the log of each id's share of the counts, one added to each, float32 (size,)."""
        smoothed = self.frequencies + 1.0
        return torch.from_numpy(np.log(smoothed / smoothed.sum())).float()


def make_matrix(rows: int, width: int) -> nn.Parameter:
    """Return a fresh matrix, whose outputs of LayerNorm's states have a deviation of 0.5."""
    return nn.Parameter(torch.empty(rows, width).normal_(std=0.5 / math.sqrt(width)))


class OutputLayer(nn.Module, ABC):
    """Layer that predicts ids from states (N, D); a training criterion is a subclass of its own.

    `weight` (V, D) is the output matrix, which may be the input embedding; None: there are several.
    With `sparse` its gradient is sparse.
    """

    Config: ClassVar[type]
    sampled: ClassVar[bool] = False  # training touches a sample of the matrix's rows
    weight: nn.Parameter | None
    sparse: bool = False
    # the logits are states times `weight` plus a bias, so that `packed` may do it
    linear: bool = False
    # stands for `weight` where lmtools.models.engine prepared it
    packed = None
    # draws the noise of sampled criteria, on the CPU; None: torch's own
    generator: torch.Generator | None = None

    @classmethod
    def complete(cls, output: dict, size: int) -> dict:
        """Return the settings of a layer with those that a vocabulary of `size` ids decides."""
        return output

    @classmethod
    @abstractmethod
    def create(
        cls, config, shared: nn.Parameter | None, width: int, targets: Targets, sparse: bool
    ) -> "OutputLayer":
        """Return a layer by the criterion's own Config, for states of `width` columns. `shared` is
        the input embedding that is the output matrix too, or None; `sparse`: where the criterion
        does not touch all of the matrix, its gradient is to be sparse.
        """

    def forward(self, states: Tensor, targets: Tensor) -> tuple[Tensor, int]:
        """Return the summed training loss of targets (N,) and their number; without gradients the
        exact negative log-probability in nats, comparable among criteria.
        """
        if torch.is_grad_enabled():
            return self.training_loss(states, targets), len(targets)
        log_p = self.log_prob(states.to(product_dtype(states)), targets)
        return -log_p.sum(dtype=torch.float64), len(targets)

    @abstractmethod
    def training_loss(self, states: Tensor, targets: Tensor) -> Tensor:
        """Return the summed loss, with gradients."""

    @abstractmethod
    def unnormalised(self, states: Tensor, targets: Tensor) -> Tensor:
        """Return log p(target | state) up to normalisation in nats, float32 (N,), without a pass
        over the vocabulary where that is possible.
        """

    @abstractmethod
    def log_normaliser(self, states: Tensor) -> Tensor:
        """Return the log of the sum over the vocabulary of exp(unnormalised), float32 (N,)."""

    def log_prob(self, states: Tensor, targets: Tensor) -> Tensor:
        """Return log p(target | state) in nats, normalised over the vocabulary, float32 (N,)."""
        return self.unnormalised(states, targets) - self.log_normaliser(states)

    def traced_log_prob(self, states: Tensor, targets: Tensor) -> Tensor:
        """Return `log_prob` with gradients, which training from lists needs."""
        raise UserError(
            f"{type(self).__name__.lower()}: this output layer learns from text alone; train from"
            " lists with criterion softmax"
        )

    def matrix(self, dtype: torch.dtype):
        """Return the matrix to multiply with states of `dtype`: prepared, or `weight`."""
        return self.weight.to(dtype) if self.packed is None else self.packed

    @abstractmethod
    def distribution(self, states: Tensor) -> Tensor:
        """Return log p of all ids, float32 (N, V)."""

    def rows(self) -> dict[str, Tensor]:
        """Return the id of each row of each parameter by name; negative: of a class of ids."""
        ids = torch.arange(len(self.weight))
        return {"weight": ids, "bias": ids}


def in_precision(output: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Return the output layer with its matrices in `dtype`: a copy where they are not."""
    converted = {
        id(matrix): nn.Parameter(matrix.detach().to(dtype), requires_grad=False)
        for matrix in output.parameters()
        if matrix.dim() == 2 and matrix.dtype != dtype
    }
    return copy.deepcopy(output, converted) if converted else output
