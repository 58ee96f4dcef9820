"""The output matrix prepared, block by block of the vocabulary."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lmtools.models.device import PRECISIONS
from lmtools.models.engine.linear import (
    Int8Linear,
    pack_weight,
    packed_product,
    quantise_rows,
    weight_levels,
)


class PackedMatrix:
    """Stands for the matrix (V, D) of an output layer: what lmtools.models.outputs.logits asks of
    one.
    """

    def __init__(self, weight: Tensor, precision: str):
        self.weight, self.precision = weight, precision
        self.blocks: dict[int, Sequence] = {}

    def __len__(self) -> int:
        return len(self.weight)

    def enter(self, states: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Return states (N, D) as the blocks multiply them; in int8 levels and scales."""
        if self.precision == "int8":
            return quantise_rows(states)
        return states.to(PRECISIONS[self.precision])

    def split(self, columns: int) -> Sequence:
        """Return the blocks of so many ids, packed on the first call."""
        if columns not in self.blocks:
            make = Int8Block if self.precision == "int8" else PackedBlock
            parts = self.weight.split(columns)
            self.blocks[columns] = [make(part, PRECISIONS[self.precision]) for part in parts]
        return self.blocks[columns]

    def dot(self, states: Tensor, targets: Tensor) -> Tensor:
        """Return h . W[target] (N,) float32 of the values that the blocks multiply."""
        rows = self.weight[targets]
        if self.precision == "int8":
            quantised = quantise_rows(states), quantise_rows(rows, weight_levels())
            states, rows = (levels * scale for levels, scale in quantised)
        return (states.float() * rows.to(states.dtype).float()).sum(-1)


class PackedBlock:
    """Some rows of the matrix in float32 or bfloat16; `fused`: one kernel may take exp and sum, in
    bfloat16 not, which has the bits of torch.
    """

    def __init__(self, weight: Tensor, dtype: torch.dtype):
        self.dtype, self.fused = dtype, dtype == torch.float32
        self.packed = pack_weight(weight.to(dtype))

    def logits(self, states: Tensor, bias: Tensor) -> Tensor:
        """Return h W^T + b in float32; b is added in float32."""
        if self.dtype == torch.float32:
            return packed_product(states, self.packed, bias)
        return packed_product(states, self.packed, None).float().add_(bias)


class Int8Block:
    """Some rows of the matrix in int8."""

    fused = True

    def __init__(self, weight: Tensor, dtype: torch.dtype):
        self.linear = Int8Linear(weight, None)

    def logits(self, states: tuple[Tensor, Tensor], bias: Tensor) -> Tensor:
        """Return h W^T + b in float32; b is added in float32."""
        return self.linear.multiply(*states, bias)
