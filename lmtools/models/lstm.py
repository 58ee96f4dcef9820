"""LSTM language models: embedding, layers of LSTM, output matrix; no limit on a sentence's length."""

import sys
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from lmtools.models.dropout import Dropout
from lmtools.models.memory import Rows, levels


@dataclass(frozen=True)
class LstmConfig:
    """The size of an LSTM; the defaults are the sampling paper's, with an output matrix of its own."""

    layers: int = 2
    dim: int = 128  # of the embedding
    units: int = 2048
    tied: bool = False  # the embedding is the output matrix too, after a linear map from `units` to `dim`
    dropout: float = 0.0

    positions = sys.maxsize  # not a setting: an LSTM reads inputs of any length


class Lstm(nn.Module):
    """State t has seen tokens 0..t and predicts token t+1."""

    Config = LstmConfig

    def __init__(self, config: LstmConfig, vocabulary: int):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocabulary, config.dim)
        widths = [config.dim, *[config.units] * (config.layers - 1)]
        self.layers = nn.ModuleList(nn.LSTM(width, config.units, batch_first=True) for width in widths)
        self.bottleneck = nn.Linear(config.units, config.dim) if config.tied else nn.Identity()
        self.dropout = Dropout(config.dropout)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    @property
    def lookup(self) -> nn.Embedding:
        """The table of input embeddings, (V, dim)."""
        return self.embedding

    @property
    def shared(self) -> nn.Parameter | None:
        """The table's matrix where it is the output layer's too, else None."""
        return self.embedding.weight if self.config.tied else None

    @property
    def width(self) -> int:
        """The columns of the output matrix."""
        return self.config.dim if self.config.tied else self.config.units

    def hidden(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """The last layer's states (B, T, units) for right-padded `tokens` (B, T); padding comes after all that anybody reads."""
        state = self.embedding(tokens)
        for layer in self.layers:
            state, _ = layer(self.dropout(state))
        return state

    def head(self, states: Tensor) -> Tensor:
        """States (N, units) ready for the output matrix."""
        return self.bottleneck(self.dropout(states))

    def memory(self) -> "Cells":
        """An empty memory of prefixes."""
        return Cells(self)


class Cells:
    """The LSTM states of a tree of prefixes: in one row a prefix, output and cell of each layer, 8 x layers x units bytes."""

    def __init__(self, model: Lstm):
        self.model = model
        self.width = model.config.units
        self.rows = Rows(2 * len(model.layers) * self.width, model.embedding.weight.device)

    def grow(self, parents: np.ndarray, tokens: np.ndarray) -> Tensor:
        """See lmtools.models.memory.Memory; prefixes whose parents are new too come one level after them."""
        first = self.rows.add(len(tokens))
        ids = torch.from_numpy(tokens).to(self.rows.values.device)
        states = ids.new_empty((len(tokens), self.width), dtype=torch.float32)
        for some in levels(parents, first):
            before = self.rows.values[np.maximum(parents[some], 0)]
            after = self.step(ids[some], before if parents[some[0]] >= 0 else torch.zeros_like(before))
            self.rows.values[first + some] = after
            states[some] = after[:, -2 * self.width : -self.width]
        return states

    def step(self, ids: Tensor, before: Tensor) -> Tensor:
        """The rows (B, 2 x layers x units) after one more token; nn.LSTM costs several times more for a single step."""
        state, after = self.model.embedding(ids), []
        parts = before.chunk(2 * len(self.model.layers), dim=1)
        for layer, *old in zip(self.model.layers, parts[::2], parts[1::2], strict=True):
            state, cell = torch.lstm_cell(state, old, *layer.parameters())
            after += [state.float(), cell.float()]
        return torch.cat(after, dim=1)
