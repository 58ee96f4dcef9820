"""The full softmax over the vocabulary, trained with cross entropy, and the adaptive softmax (Grave
et al. 2017): rare words by class, in smaller dimensions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Annotated

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor, nn

from lmtools.base.config import LATE, check_choices, check_numbers
from lmtools.base.errors import UserError
from lmtools.base.grammar import Count, Share
from lmtools.models.outputs.base import OutputLayer, make_matrix
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
    smoothing: Share = field(default=0.0, metadata=LATE)

    def __post_init__(self):
        check_numbers(self, "output.")
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


@dataclass(frozen=True)
class AdaptiveConfig:
    """Division of the vocabulary by frequency."""

    cutoffs: tuple[Count, ...] = ()  # (): when training begins, a fifteenth and a third of the ids
    divide: Annotated[float, Meta(ge=1, le=1024)] = 4.0

    def __post_init__(self):
        check_numbers(self, "output.")


class Adaptive(OutputLayer):
    """p(w|h) = p(w|head) below `cutoffs[0]`, p(cluster|head) p(w|cluster) between two cutoffs.

    Ids are ranked by frequency (`rank` (V,), saved with the weights). Cluster i has projected
    states of width // divide ** (i + 1) dimensions and a matrix of its own, so that no embedding is
    shared with it. Each target costs the head and its own cluster; blocks of logits come and go as
    in Softmax.
    """

    Config = AdaptiveConfig

    @classmethod
    def complete(cls, output, size):
        """See OutputLayer: cut-offs at a fifteenth and a third, to half a power of ten."""
        places = [size / part for part in (15, 3)]
        steps = [max(1.0, 10 ** math.floor(math.log10(place)) / 2) for place in places]
        chosen = {max(1, int(round(a / b) * b)) for a, b in zip(places, steps, strict=True)}
        return output if output.get("cutoffs") else {**output, "cutoffs": sorted(chosen)}

    @classmethod
    def create(cls, config, shared, width, targets, sparse):
        """See OutputLayer; no matrix is the embedding or has sparse gradients."""
        output = cls(width, targets.size, config.cutoffs, config.divide)
        order = np.argsort(-targets.frequencies, kind="stable")
        output.rank[torch.from_numpy(order)] = torch.arange(targets.size)
        return output

    def __init__(self, width: int, size: int, cutoffs: Sequence[int], divide: float = 4.0):
        super().__init__()
        self.weight = None
        edges = [*cutoffs, size]
        if not cutoffs or cutoffs[0] < 1 or any(a >= b for a, b in pairwise(edges)):
            raise UserError(
                f"output.cutoffs: {list(cutoffs)} do not ascend from 1 to below the {size} ids;"
                " give fewer or smaller ones, or none: they then suit the ids"
            )
        self.edges = edges
        self.register_buffer("rank", torch.arange(size))
        self.head = Softmax(make_matrix(edges[0] + len(cutoffs), width))
        narrow = [max(1, int(width // divide ** (i + 1))) for i in range(len(cutoffs))]
        self.projections = nn.ModuleList(nn.Linear(width, d, bias=False) for d in narrow)
        self.tails = nn.ModuleList(
            Softmax(make_matrix(b - a, d))
            for (a, b), d in zip(pairwise(edges), narrow, strict=True)
        )

    def forward(self, states, targets):
        return self.training_loss(states, targets), len(targets)  # the parts do without gradients

    def training_loss(self, states, targets):
        ranks = self.rank[targets]
        loss = self.head(states, self.in_head(ranks))[0]
        for tail, projection, rows, places in self.clusters(ranks):
            loss = loss + tail(projection(states[rows]), places)[0]
        return loss

    def log_prob(self, states, targets):
        ranks = self.rank[targets]
        result = self.head.log_prob(states, self.in_head(ranks))
        for tail, projection, rows, places in self.clusters(ranks):
            result[rows] += tail.log_prob(
                nn.functional.linear(states[rows], projection.weight.to(states.dtype)), places
            )
        return result

    def unnormalised(self, states, targets):
        # the head and the clusters are normalised, and there is no cheaper score
        return self.log_prob(states, targets)

    def log_normaliser(self, states):
        return torch.zeros(len(states), device=states.device)

    def distribution(self, states):
        head, first = self.head.distribution(states), self.edges[0]
        parts = [head[:, :first]]
        for i, (tail, projection) in enumerate(zip(self.tails, self.projections, strict=True)):
            narrow = nn.functional.linear(states, projection.weight.to(states.dtype))
            parts.append(head[:, first + i, None] + tail.distribution(narrow))
        return torch.cat(parts, 1)[:, self.rank]

    def rows(self):
        ranked, classes = self.rank.argsort().cpu(), -1 - torch.arange(len(self.tails))
        parts = {"head": torch.cat([ranked[: self.edges[0]], classes])}
        for i, (begin, end) in enumerate(pairwise(self.edges)):
            parts[f"tails.{i}"] = ranked[begin:end]
        return {f"{part}.{name}": ids for part, ids in parts.items() for name in ("weight", "bias")}

    def in_head(self, ranks: Tensor) -> Tensor:
        """Return the head's class of each target: its rank itself, or cutoffs[0] + its cluster."""
        edges = torch.tensor(self.edges[:-1], device=ranks.device)
        cluster = torch.bucketize(ranks, edges, right=True)
        return torch.where(cluster == 0, ranks, self.edges[0] + cluster - 1)

    def clusters(self, ranks: Tensor):
        """Yield each cluster's softmax and projection, rows (M,) and places (M,) in it."""
        for i, (tail, projection) in enumerate(zip(self.tails, self.projections, strict=True)):
            rows = ((ranks >= self.edges[i]) & (ranks < self.edges[i + 1])).nonzero()[:, 0]
            if len(rows):
                yield tail, projection, rows, ranks[rows] - self.edges[i]
