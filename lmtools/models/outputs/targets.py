"""Predicted ids as an output layer knows them.

Counts rank the ids for log-uniform noise and adaptive clusters: no vocabulary has to be sorted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn


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
    """Return a fresh output matrix: outputs of states that come from a LayerNorm have a standard
    deviation of 0.5.
    """
    return nn.Parameter(torch.empty(rows, width).normal_(std=0.5 / math.sqrt(width)))
