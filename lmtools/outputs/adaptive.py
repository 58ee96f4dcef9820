"""Adaptive softmax (Grave et al. 2017, Efficient softmax approximation for GPUs): rare words by class, in smaller dimensions."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from lmtools.errors import UserError
from lmtools.outputs.softmax import Softmax


class Adaptive(nn.Module):
    """p(w|h) = p(w|head) for the first `cutoffs[0]` ids, p(cluster|head) p(w|cluster) for those between two cutoffs.

    Ids are sorted by frequency. Cluster i has projected states of width // divide ** (i + 1) dimensions and a matrix of its own, so
    that no embedding is shared with it. Each target costs the head and its own cluster; blocks of logits come and go as in Softmax.
    """

    def __init__(self, width: int, size: int, cutoffs: Sequence[int], divide: float = 4.0):
        super().__init__()
        edges = [*cutoffs, size]
        if not cutoffs or cutoffs[0] < 1 or any(a >= b for a, b in pairwise(edges)):
            raise UserError(f"cutoffs: {list(cutoffs)} do not ascend from 1 to below the {size} ids; give fewer or smaller ones")
        self.edges = edges
        self.head = Softmax(matrix(edges[0] + len(cutoffs), width))
        narrow = [max(1, int(width // divide ** (i + 1))) for i in range(len(cutoffs))]
        self.projections = nn.ModuleList(nn.Linear(width, d, bias=False) for d in narrow)
        self.tails = nn.ModuleList(Softmax(matrix(b - a, d)) for (a, b), d in zip(pairwise(edges), narrow, strict=True))

    def forward(self, states: Tensor, targets: Tensor) -> tuple[Tensor, int]:
        """The summed cross entropy in nats and the number of targets; states (N, D), targets (N,)."""
        loss = self.head(states, self.in_head(targets))[0]
        for tail, projection, rows, places in self.clusters(targets):
            loss = loss + tail(projection(states[rows]), places)[0]
        return loss, len(targets)

    def log_prob(self, states: Tensor, targets: Tensor) -> Tensor:
        """log p(target | state) in nats, float32 (N,)."""
        result = self.head.log_prob(states, self.in_head(targets))
        for tail, projection, rows, places in self.clusters(targets):
            result[rows] += tail.log_prob(nn.functional.linear(states[rows], projection.weight.to(states.dtype)), places)
        return result

    def unnormalised(self, states: Tensor, targets: Tensor) -> Tensor:
        """`log_prob`: the head and the clusters are normalised and there is no cheaper score."""
        return self.log_prob(states, targets)

    def log_normaliser(self, states: Tensor) -> Tensor:
        """Zeros (N,)."""
        return torch.zeros(len(states), device=states.device)

    def in_head(self, targets: Tensor) -> Tensor:
        """The head's class of each target: the id itself, or cutoffs[0] + its cluster."""
        cluster = torch.bucketize(targets, torch.tensor(self.edges[:-1], device=targets.device), right=True)
        return torch.where(cluster == 0, targets, self.edges[0] + cluster - 1)

    def clusters(self, targets: Tensor):
        """Each cluster that has targets: its softmax, its projection, which rows (M,) they are and their places (M,) in it."""
        for i, (tail, projection) in enumerate(zip(self.tails, self.projections, strict=True)):
            rows = ((targets >= self.edges[i]) & (targets < self.edges[i + 1])).nonzero()[:, 0]
            if len(rows):
                yield tail, projection, rows, targets[rows] - self.edges[i]


def matrix(rows: int, width: int) -> nn.Parameter:
    """A fresh output matrix."""
    return nn.Parameter(torch.empty(rows, width).normal_(std=width**-0.5))
