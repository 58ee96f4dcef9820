"""Gated convolutional language models (Dauphin et al. 2017, Language Modeling with Gated
Convolutional Networks).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from lmtools.base.config import check_choices, check_numbers
from lmtools.base.errors import UserError
from lmtools.base.grammar import Count, Positive, Share
from lmtools.models.base import Trunk
from lmtools.models.convolution import GATES, GatedConvolution
from lmtools.models.device import Dropout
from lmtools.models.memory import Rows

BLOCK = re.compile(r"\s*\[([^\[\]]*)\]\s*(?:x\s*(\d+)\s*)?")
LAYER = re.compile(r"\s*(\d+)\s*,\s*(\d+)\s*")
Shape = tuple[tuple[int, int], ...]  # (kernel, outputs) of each layer of a residual block


@dataclass(frozen=True)
class GcnnConfig:
    """Size and form of a gated convolutional model; default: six layers of [4, 256]."""

    dim: Count = 128  # of the embedding (lookup)
    # as in the paper's Table 1: "[kernel, outputs; kernel, outputs] x times" a residual block
    blocks: tuple[str, ...] = ("[4, 256] x 6",)
    gate: str = "glu"  # or gtu, relu, tanh, bilinear, linear
    weight_norm: bool = True
    # of the sum of a block's input and output: the paper's plain sum; 0.5**0.5: fairseq's, which
    # keeps the variance from block to block
    residual_scale: Positive = 1.0
    dropout: Share = 0.0  # on what each convolution of a block reads

    def __post_init__(self):
        check_choices(self, "arch.", gate=GATES)
        check_numbers(self, "arch.")
        if not self.blocks:
            raise UserError("arch.blocks: a model needs a block at least; give one")
        self.shapes  # noqa: B018 - refuses what is no notation

    @property
    def shapes(self) -> list[Shape]:
        return [shape for text in self.blocks for shape in read_blocks(text)]

    @property
    def receptive_field(self) -> int:
        """Return the number of tokens that a state sees, its own included."""
        return 1 + sum(kernel - 1 for shape in self.shapes for kernel, _ in shape)


def read_blocks(text: str) -> list[Shape]:
    """Read blocks `[kernel, outputs; kernel, outputs] x times`; UserError for anything else."""
    block = BLOCK.fullmatch(text)
    layers = [LAYER.fullmatch(layer) for layer in block[1].split(";")] if block else [None]
    shape = tuple((int(layer[1]), int(layer[2])) for layer in layers if layer)
    times = int(block[2] or 1) if block else 0
    if (
        len(shape) < len(layers)
        or times < 1
        or any(number < 1 for layer in shape for number in layer)
    ):
        example = "'[1, 128; 5, 128; 1, 512] x 3'"
        raise UserError(
            f"arch.blocks: cannot read {text!r}; write [kernel, outputs; kernel, outputs ...] x"
            f" times, as in {example}"
        )
    return [shape] * times


class GatedBlock(nn.Module):
    """A pre-activation residual block of gated convolutions; widths that differ are mapped."""

    def __init__(self, config: GcnnConfig, channels: int, shape: Shape):
        super().__init__()
        self.gate, self.scale = GATES[config.gate], config.residual_scale
        self.dropout = Dropout(config.dropout)
        # dropped inputs: Kaiming's variance times keep
        keep, widths = 1 - config.dropout, [channels, *(outputs for _, outputs in shape)]
        self.layers = nn.ModuleList(
            GatedConvolution(
                inner,
                self.gate.branches * outer,
                kernel,
                variance=self.gate.gain * keep,
                normalised=config.weight_norm,
            )
            for (inner, outer), (kernel, _) in zip(pairwise(widths), shape, strict=True)
        )
        self.projection: nn.Module = nn.Identity()
        if channels != widths[-1]:
            self.projection = GatedConvolution(
                channels, widths[-1], 1, variance=keep, normalised=config.weight_norm
            )

    def forward(
        self,
        state: Tensor,
        convolve: Callable[[GatedConvolution, Tensor], Tensor] = GatedConvolution.__call__,
    ) -> Tensor:
        """Map (..., channels) to (..., outputs), with convolutions by `convolve`."""
        inner = state
        for layer in self.layers:
            inner = self.gate.function(convolve(layer, self.dropout(inner)))
        # float32 from block to block, whatever the products are in
        total = self.projection(state).to(state.dtype) + inner
        return total if self.scale == 1 else total * self.scale


class Gcnn(Trunk):
    """State t has seen tokens t - receptive field + 1 .. t, zeros before; predicts token t+1."""

    Config = GcnnConfig
    title = "GCNN"

    def __init__(self, config: GcnnConfig, vocabulary: int):
        super().__init__(config)
        self.embedding = nn.Embedding(vocabulary, config.dim)
        self.dropout = Dropout(config.dropout)
        shapes = config.shapes
        widths = [config.dim, *(shape[-1][1] for shape in shapes)]
        self.blocks = nn.ModuleList(
            GatedBlock(config, channels, shape)
            for channels, shape in zip(widths, shapes, strict=False)
        )
        nn.init.normal_(self.embedding.weight, std=0.1)

    @property
    def width(self) -> int:
        return self.config.shapes[-1][-1][1]

    def describe(self):
        return f"receptive field {self.config.receptive_field} tokens"

    def layer_states(self, tokens: Tensor, lengths: Tensor) -> Iterator[Tensor]:
        state = self.dropout(self.embedding(tokens))
        yield state
        for block in self.blocks:
            state = block(state)
            yield state

    def memory(self):
        return ConvolutionInputs(self)


class ConvolutionInputs:
    """Inputs of the convolutions over a tree of prefixes: each one's input at the last token, a row
    a prefix.

    4 x the channels of all convolutions with kernels over 1 bytes a prefix, and 8 for its parent.
    New prefixes all go through together, whatever their lengths: each gathers the rows of its
    nearest ancestors.
    """

    def __init__(self, model: Gcnn):
        self.model = model
        self.device = model.embedding.weight.device
        layers = [layer for block in model.blocks for layer in block.layers if layer.kernel > 1]
        self.rows = {layer: Rows(layer.direction.shape[1], self.device) for layer in layers}
        self.reach = max((layer.kernel for layer in layers), default=1)
        self.parents = np.full(1, -1)
        for rows in self.rows.values():
            # row 0 is what stands before the first token; prefix r is row r + 1
            rows.values[rows.add(1)] = 0

    def grow(self, parents: np.ndarray, tokens: np.ndarray) -> Tensor:
        """See lmtools.models.memory.Memory."""
        first = len(self.parents)
        self.parents = np.concatenate([self.parents, parents + 1])
        seen = torch.from_numpy(self.ancestors(first)).to(self.device)

        def convolve(layer: GatedConvolution, state: Tensor) -> Tensor:
            if layer.kernel == 1:
                return layer(state)
            rows = self.rows[layer]
            rows.add(len(state))
            rows.values[first : rows.count] = state[:, 0]
            return layer.last(rows.values[seen[:, -layer.kernel :]].flatten(1))[:, None]

        # (B, 1, dim): as many texts of one token
        state = self.model.embedding(torch.from_numpy(tokens).to(self.device))[:, None]
        for block in self.model.blocks:
            state = block(state, convolve)
        return state[:, 0].float()

    def ancestors(self, first: int) -> np.ndarray:
        """Return rows of the new prefixes and those before, oldest first, 0: none (B, reach)."""
        chain = [np.arange(first, len(self.parents))]
        for _ in range(self.reach - 1):
            chain.append(np.maximum(self.parents[chain[-1]], 0))
        return np.stack(chain[::-1], 1)
