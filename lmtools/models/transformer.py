"""The parts that the Transformer language models share; they differ only in what a position may look at.

Post-LayerNorm blocks with exact-erf GELU, learned positions, and an output head of dense + GELU + LayerNorm before the tied
output matrix, as in BERT and in the T-TA paper's code; so causal, masked and T-TA models have equal parameter counts.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmtools.errors import UserError
from lmtools.models.dropout import Dropout


@dataclass(frozen=True)
class TransformerConfig:
    """The size of a Transformer; the defaults are the T-TA paper's."""

    layers: int = 3
    dim: int = 512
    heads: int = 8
    ffn: int = 2048
    positions: int = 128  # the longest input, with the boundary tokens
    dropout: float = 0.1
    attention_dropout: float = 0.0  # on the attention weights; anything but 0 is slow on a CPU

    def __post_init__(self):
        if self.dim % self.heads:
            raise UserError(f"arch.dim {self.dim} is not a multiple of arch.heads {self.heads}; change one")


class Embedding(nn.Module):
    """LayerNorm(token + position), (B, T) -> (B, T, D)."""

    def __init__(self, config: TransformerConfig, vocabulary: int):
        super().__init__()
        self.token = nn.Embedding(vocabulary, config.dim)
        self.position = nn.Embedding(config.positions, config.dim)
        self.norm = nn.LayerNorm(config.dim, eps=1e-12)
        self.dropout = Dropout(config.dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.dropout(self.norm(self.token(tokens) + self.position.weight[: tokens.shape[-1]]))

    def at(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """The embeddings (N, D) of tokens (N,) at any positions (N,)."""
        return self.dropout(self.norm(self.token(tokens) + self.position(positions)))

    def constant(self, token: int, length: int) -> Tensor:
        """The embedding of one token at every position, (T, D)."""
        return self.dropout(self.norm(self.token.weight[token] + self.position.weight[:length]))


class Block(nn.Module):
    """One post-LayerNorm layer in pieces, so that a model may give queries and keys different inputs or skip rows nobody reads."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.heads, self.attention_dropout = config.heads, config.attention_dropout
        self.query = nn.Linear(config.dim, config.dim)
        self.key_value = nn.Linear(config.dim, 2 * config.dim)
        self.attention = nn.Linear(config.dim, config.dim)
        self.attention_norm = nn.LayerNorm(config.dim, eps=1e-12)
        self.inner = nn.Linear(config.dim, config.ffn)
        self.outer = nn.Linear(config.ffn, config.dim)
        self.norm = nn.LayerNorm(config.dim, eps=1e-12)
        self.dropout = Dropout(config.dropout)

    def forward(self, state: Tensor, source: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """`state` (B, Q, D) after attending to `source` (B, T, D); `mask` (B or 1, 1, Q, T) is True where a position may look."""
        return self.finish(state, self.attend(self.query(state), self.key_value(source), mask, causal))

    def attend(self, query: Tensor, key_value: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """Multi-head attention: query (B, Q, D), key_value (B, T, 2 D) -> context (B, Q, D), before its output projection."""
        key, value = key_value.chunk(2, dim=-1)
        query, key, value = (x.unflatten(-1, (self.heads, -1)).transpose(1, 2) for x in (query, key, value))  # (B, H, ., D/H)
        context = attention(query, key, value, mask, causal, self.attention_dropout if self.training else 0.0)
        return context.transpose(1, 2).flatten(-2)

    def finish(self, state: Tensor, context: Tensor) -> Tensor:
        """The rest of the layer, position by position: residual and LayerNorm around attention output and feed-forward network."""
        state = self.attention_norm(state + self.dropout(self.attention(context)))
        return self.norm(state + self.dropout(self.outer(F.gelu(self.inner(state)))))


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, dropout: float) -> Tensor:
    """Scaled dot-product attention, (B, H, Q, D/H); a CPU does it in float32, where its kernel is several times faster than in bfloat16."""
    settings = {"attn_mask": mask, "is_causal": causal, "dropout_p": dropout}
    if query.device.type != "cpu" or query.dtype != torch.bfloat16:
        return F.scaled_dot_product_attention(query, key, value, **settings)
    with torch.autocast("cpu", enabled=False):
        return F.scaled_dot_product_attention(query.float(), key.float(), value.float(), **settings)


class Transformer(nn.Module):
    """Base of the families: embedding, blocks and head; a family defines `hidden`."""

    Config = TransformerConfig

    def __init__(self, config: TransformerConfig, vocabulary: int):
        super().__init__()
        self.config = config
        self.embedding = Embedding(config, vocabulary)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.head_dense = nn.Linear(config.dim, config.dim)
        self.head_norm = nn.LayerNorm(config.dim, eps=1e-12)
        self.apply(initialise)

    @property
    def output_weight(self) -> nn.Parameter:
        """The (V, D) matrix that the output layer shares with the input embedding."""
        return self.embedding.token.weight

    def hidden(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """The last layer's states (B, T, D) for right-padded `tokens` (B, T) of true `lengths` (B,)."""
        raise NotImplementedError

    def head(self, states: Tensor) -> Tensor:
        """States (N, D) ready for the output matrix."""
        return self.head_norm(F.gelu(self.head_dense(states)))


def initialise(module: nn.Module) -> None:
    """BERT's initialisation: truncated normal of deviation 0.02, biases 0."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.trunc_normal_(module.weight, std=0.02, a=-0.04, b=0.04)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)


def real(lengths: Tensor, width: int) -> Tensor:
    """True where a right-padded position holds a token, (B, T)."""
    return torch.arange(width, device=lengths.device) < lengths[:, None]


def matrix_flops(config: TransformerConfig, positions: int, attended: int, vocabulary: int = 0, predicted: int = 0) -> float:
    """Floating point operations of the matrix products of one forward pass over `positions` rows that attend to `attended` keys.

    `predicted` rows also go through the head and the (V, D) output matrix.
    """
    layer = 4 * config.dim**2 + 2 * config.dim * config.ffn + 2 * attended * config.dim
    output = config.dim**2 + config.dim * vocabulary
    return 2.0 * math.fsum((positions * config.layers * layer, predicted * output))
