"""LSTM language models: embedding, layers of LSTM, output matrix; no limit on a sentence's
length.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmtools.base.config import check_numbers
from lmtools.base.errors import UserError
from lmtools.base.grammar import Count, Share
from lmtools.models.base import Trunk
from lmtools.models.device import Dropout, onednn_computes_bfloat16, product_dtype
from lmtools.models.memory import Rows, group_levels

# torch computes it otherwise
warnings.filterwarnings("ignore", "LSTM with projections is not supported with oneDNN")


@dataclass(frozen=True)
class LstmConfig:
    """The size of an LSTM; defaults are the sampling paper's, with an own output matrix."""

    layers: Count = 2
    dim: Count = 128  # of the embedding
    units: Count = 2048
    # width that each layer's output is mapped to (Sak et al. 2014), for the layer itself and the
    # next; 0: none
    projection: int = 0
    # the embedding is the output matrix too, after a linear map from the last layer's output to
    # `dim`
    tied: bool = False
    dropout: Share = 0.0

    def __post_init__(self):
        check_numbers(self, "arch.")
        if self.projection >= self.units:
            raise UserError(
                f"arch.projection: {self.projection} is not below arch.units {self.units}; give"
                " less, or 0 for none"
            )


class Lstm(Trunk):
    """State t has seen tokens 0..t and predicts token t+1."""

    Config = LstmConfig
    title = "LSTM"
    stack_name = "layers"
    tree_tokens = 8192  # prefixes of one length go through together; fewer make small products

    def __init__(self, config: LstmConfig, vocabulary: int):
        super().__init__(config)
        self.tied = config.tied
        self.embedding = nn.Embedding(vocabulary, config.dim)
        self.outputs = config.projection or config.units  # columns of a layer's output
        widths = [config.dim, *[self.outputs] * (config.layers - 1)]
        self.layers = nn.ModuleList(
            nn.LSTM(width, config.units, batch_first=True, proj_size=config.projection)
            for width in widths
        )
        self.bottleneck = nn.Linear(self.outputs, config.dim) if config.tied else nn.Identity()
        self.dropout = Dropout(config.dropout)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    @property
    def width(self) -> int:
        return self.config.dim if self.config.tied else self.outputs

    def layer_states(self, tokens: Tensor, lengths: Tensor) -> Iterator[Tensor]:
        state = self.embedding(tokens)
        yield state
        for layer in self.layers:
            state = run_layer(layer, self.dropout(state))
            yield state

    def head(self, states: Tensor) -> Tensor:
        return self.bottleneck(self.dropout(states))

    def memory(self):
        return Cells(self)


def run_layer(layer: nn.LSTM, inputs: Tensor) -> Tensor:
    """Return a layer's states (B, T, outputs); in float32 where bfloat16 is missing."""
    if product_dtype(inputs) != torch.bfloat16 or onednn_computes_bfloat16():
        return layer(inputs)[0]
    with torch.autocast("cpu", enabled=False):
        return layer(inputs)[0]


class Cells:
    """LSTM states of a tree of prefixes, a row each: 4 x layers x (outputs + units) bytes."""

    def __init__(self, model: Lstm):
        self.model = model
        self.sizes = [model.outputs, model.config.units] * len(model.layers)
        self.rows = Rows(sum(self.sizes), model.embedding.weight.device)

    def grow(self, parents: np.ndarray, tokens: np.ndarray) -> Tensor:
        """See lmtools.models.memory.Memory; children come one level after new parents."""
        # where the last layer's output begins
        first, last = self.rows.add(len(tokens)), sum(self.sizes[:-2])
        ids = torch.from_numpy(tokens).to(self.rows.values.device)
        states = ids.new_empty((len(tokens), self.model.outputs), dtype=torch.float32)
        for level in group_levels(parents, first):
            before = self.rows.values[np.maximum(parents[level], 0)]
            if parents[level[0]] < 0:
                before = torch.zeros_like(before)
            after = self.step(ids[level], before)
            self.rows.values[first + level] = after
            states[level] = after[:, last : last + self.model.outputs]
        return states

    def step(self, ids: Tensor, before: Tensor) -> Tensor:
        """Return the rows after one more token; nn.LSTM costs several times more for one step."""
        state, after = self.model.embedding(ids), []
        parts = before.split(self.sizes, dim=1)
        for layer, *old in zip(self.model.layers, parts[::2], parts[1::2], strict=True):
            state, cell = (projected_cell if layer.proj_size else torch.lstm_cell)(
                state, old, *layer.parameters()
            )
            after += [state.float(), cell.float()]
        return torch.cat(after, dim=1)


def projected_cell(
    x: Tensor, old: list[Tensor], w: Tensor, u: Tensor, b: Tensor, c: Tensor, p: Tensor
) -> tuple[Tensor, Tensor]:
    """Return output and cell of an LSTM with projection `p`; torch.lstm_cell has none."""
    output, cell = old
    i, f, g, o = (F.linear(x, w, b) + F.linear(output, u, c)).chunk(4, dim=1)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return F.linear(o.sigmoid() * cell.tanh(), p), cell
