"""Sentences of any lengths in one matrix, one after the other, without padding between them.

All but the attention of a Transformer reads a row of that matrix by itself, so that nothing is
computed for padding and no batch needs sentences of one length. A row then has equal bits in any
company as long as those of a product's row do not depend on how many rows there are: matrices have
a multiple of STEP rows, and `rows_agree` tries a model's products with each number of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional as F

from lmtools.base.batching import RAGGED_ROWS
from lmtools.models.objectives import Examples
from lmtools.models.outputs.base import OutputLayer
from lmtools.models.outputs.logits import block_logits, tile

STEP = 32  # of fewer rows, kernels take some for what is left over of their tiles


def fill_up(ids: Tensor) -> Tensor:
    """Return ids (N,) and as many 0 as make N a multiple of STEP."""
    return F.pad(ids, (0, -len(ids) % STEP))


@dataclass(frozen=True)
class Ragged:
    """Token ids (P,) of sentences and their `positions` (P,), and which rows of the matrix (N,)
    predict which `targets` (N,), all filled up; the `lengths` of the sentences (B,).
    """

    tokens: Tensor
    positions: Tensor
    lengths: Tensor
    rows: Tensor
    targets: Tensor

    @classmethod
    def of(cls, examples: Examples) -> "Ragged":
        place = torch.arange(examples.inputs.shape[1])
        real = place < examples.lengths[:, None]
        row = real.flatten().cumsum(0) - 1
        parts = examples.inputs[real], place.expand_as(real)[real]
        tokens, positions = map(fill_up, parts)
        rows, targets = fill_up(row[examples.rows]), fill_up(examples.targets)
        return cls(tokens, positions, examples.lengths, rows=rows, targets=targets)

    @cached_property
    def groups(self) -> list[tuple[slice, int]]:
        """The rows of neighbours of one length, and their number."""
        lengths, counts = torch.unique_consecutive(self.lengths, return_counts=True)
        ends = (lengths * counts).cumsum(0).tolist()
        bounds = pairwise([0, *ends])
        return [
            (slice(*bound), count) for bound, count in zip(bounds, counts.tolist(), strict=True)
        ]

    def attend(
        self, attend: Callable[..., Tensor], query: Tensor, key_value: Tensor, look: Callable
    ) -> Tensor:
        """Return contexts (P, D) of queries (P, D), keys and values (P, 2 D) by a function of those
        of sentences of one length (B, T, .) and of what `look` says of this length.
        """
        context = torch.zeros_like(query)
        for rows, count in self.groups:
            asking, seen = (x[rows].unflatten(0, (count, -1)) for x in (query, key_value))
            context[rows] = attend(asking, seen, **look(asking.shape[1])).flatten(0, 1)
        return context


@torch.inference_mode()
def rows_agree(trunk, output: OutputLayer, dtype: torch.dtype) -> bool:
    """Return whether a row's products have the same bits here in any `Ragged`."""
    states = torch.randn(RAGGED_ROWS, trunk.config.dim, generator=torch.Generator().manual_seed(0))
    for compute in list_products(trunk, output, dtype):
        whole = compute(states)
        for count in range(STEP, RAGGED_ROWS, STEP):
            if not torch.equal(compute(states[:count]), whole[:count]):
                return False
    return True


def list_products(
    trunk, output: OutputLayer, dtype: torch.dtype
) -> Iterator[Callable[[Tensor], Tensor]]:
    """Yield functions of states (N, D), one a shape of a Transformer's products."""
    block = trunk.blocks[0]
    yield from (block.query, block.key_value, lambda x: block.finish(x, x), trunk.head)

    def attend(x: Tensor) -> Tensor:
        query, key_value = (y.unflatten(0, (-1, STEP)) for y in (x, x.repeat(1, 2)))
        return block.attend(query, key_value).flatten(0, 1)

    yield attend  # sentences of STEP positions, one or several
    if output.weight is None:
        return
    weight, bias = output.matrix(dtype), output.posterior_bias()
    columns = tile(len(weight), bias.device)[1]
    enter = (lambda x: x) if isinstance(weight, Tensor) else weight.enter
    blocks = list(zip(weight.split(columns), bias.split(columns), strict=True))
    for part in (blocks[0], blocks[-1]):
        yield lambda x, part=part: block_logits(enter(x.to(dtype)), *part)
