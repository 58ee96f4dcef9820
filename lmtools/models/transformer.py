"""The parts that the Transformer language models share; they differ only in what a position may
look at.

By default post-LayerNorm blocks with exact-erf GELU, learned positions, and an output head of dense
+ GELU + LayerNorm before the tied output matrix, as in BERT and in the T-TA paper's code; so
causal, masked and T-TA models have equal parameter counts. `norm: pre` with `position: none` is the
deep Transformer of Irie et al. 2019, the sampling paper's: LayerNorm at the beginning of each
residual branch, one more at the end, none on the embedding, no dense layer in the head (theirs has
ReLU and no attention biases).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmtools.base.config import check_choices, check_numbers
from lmtools.base.errors import UserError
from lmtools.base.grammar import Count, Share
from lmtools.models.base import Trunk
from lmtools.models.device import Dropout
from lmtools.models.ragged import Ragged


@dataclass(frozen=True)
class TransformerConfig:
    """The size and form of a Transformer; the defaults are the T-TA paper's."""

    layers: Count = 3
    dim: Count = 512
    heads: Count = 8
    ffn: Count = 2048
    # the longest input, with the boundary tokens; so too where there is no position embedding to
    # run out of
    positions: Count = 128
    position: str = "learned"  # an embedding added to the token's; or none, for causal models
    # LayerNorm after the residual sum; or pre, inside the residual branch, which lets deep stacks
    # train
    norm: str = "post"
    dropout: Share = 0.1
    tied: bool = True  # the input embedding is the output matrix too
    # on the attention weights, as in BERT's code; 0.1 in conf/*.yaml of the paper's size. On a CPU
    # a step of 3 x 192 takes 5% longer with it, one of 3 x 512 not measurably
    attention_dropout: Share = 0.0

    def __post_init__(self):
        check_numbers(self, "arch.")
        if self.dim % self.heads:
            raise UserError(
                f"arch.dim {self.dim} is not a multiple of arch.heads {self.heads}; change one"
            )
        check_choices(self, "arch.", position=POSITIONS, norm=BLOCKS)


POSITIONS = ("learned", "none")


class Embedding(nn.Module):
    """LayerNorm(token + position), (B, T) -> (B, T, D); without it where blocks begin with one."""

    def __init__(self, config: TransformerConfig, vocabulary: int):
        super().__init__()
        self.token = nn.Embedding(vocabulary, config.dim)
        learned = config.position == "learned"
        self.position = nn.Embedding(config.positions, config.dim) if learned else None
        self.norm = nn.LayerNorm(config.dim, eps=1e-12) if config.norm == "post" else nn.Identity()
        self.dropout = Dropout(config.dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.at(tokens, slice(tokens.shape[-1]))

    def at(self, tokens: Tensor, positions: Tensor | slice) -> Tensor:
        """Return the embeddings (N, D) of tokens (N,) at any positions (N,)."""
        state = self.token(tokens)
        if self.position is not None:
            state = state + self.position.weight[positions]
        return self.dropout(self.norm(state))

    def constant(self, token: int, length: int) -> Tensor:
        """Return one token's embedding at every position, (T, D); its gradient stays sparse."""
        return self.at(torch.full((), token, device=self.token.weight.device), slice(length))

    def without_token(self, length: int) -> Tensor:
        """Return the embedding of each position alone, (T, D)."""
        return self.dropout(self.norm(self.position.weight[:length]))


class Attention(nn.Module):
    """Multi-head attention with the residual sum and the LayerNorm behind it, in pieces, so that a
    model may give queries and keys different inputs or skip rows nobody reads.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.heads, self.attention_dropout = config.heads, config.attention_dropout
        self.query = nn.Linear(config.dim, config.dim)
        self.key_value = nn.Linear(config.dim, 2 * config.dim)
        self.attention = nn.Linear(config.dim, config.dim)
        self.attention_norm = nn.LayerNorm(config.dim, eps=1e-12)
        self.dropout = Dropout(config.dropout)

    def enter(self, state: Tensor) -> Tensor:
        """Return the input from which queries, keys and values are projected."""
        return state

    def attend(
        self, query: Tensor, key_value: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """Compute multi-head attention, softmax(Q K^T / sqrt(D/H)) V of each head: query (B, Q, D),
        key_value (B, T, 2 D) -> context (B, Q, D), before its output projection. A CPU does it in
        float32, where its kernel is several times faster than in bfloat16.

        The T-TA paper's Eq. 2 prints sqrt(D), which is that of one head; with several it goes by
        the width of a head (Vaswani et al. 2017, Section 3.2, which the paper refers to).
        """
        key, value = key_value.chunk(2, dim=-1)
        # (B, H, ., D/H)
        heads = (x.unflatten(-1, (self.heads, -1)).transpose(1, 2) for x in (query, key, value))
        dropout = self.attention_dropout if self.training else 0.0
        settings = {"attn_mask": mask, "is_causal": causal, "dropout_p": dropout}
        if query.device.type != "cpu" or query.dtype != torch.bfloat16:
            context = F.scaled_dot_product_attention(*heads, **settings)
        else:
            with torch.autocast("cpu", enabled=False):
                floats = (part.float() for part in heads)
                context = F.scaled_dot_product_attention(*floats, **settings)
        return context.transpose(1, 2).flatten(-2)

    def join(self, state: Tensor, context: Tensor) -> Tensor:
        """Return `state` after the attention's output, residual and LayerNorm around it."""
        return self.attention_norm(state + self.dropout(self.attention(context)))


class PreNormAttention(Attention):
    """Attention with the LayerNorm at the beginning of the residual branch."""

    def enter(self, state: Tensor) -> Tensor:
        return self.attention_norm(state)

    def join(self, state: Tensor, context: Tensor) -> Tensor:
        return state + self.dropout(self.attention(context))


class TransformerBlock(Attention):
    """One post-LayerNorm layer, the T-TA paper's Eq. 1: attention, then a feed-forward network."""

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        self.inner = nn.Linear(config.dim, config.ffn)
        self.activation = nn.GELU()
        self.outer = nn.Linear(config.ffn, config.dim)
        self.norm = nn.LayerNorm(config.dim, eps=1e-12)

    def forward(
        self, state: Tensor, source: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """Return `state` (B, Q, D) after attending to `source` where `mask` is True."""
        return self.feed(self.look(state, source, mask, causal))

    def look(
        self, state: Tensor, source: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """Return the first half of `forward`, up to the feed-forward network."""
        seen = self.enter(source)
        asking = seen if state is source else self.enter(state)
        return self.join(state, self.attend(self.query(asking), self.key_value(seen), mask, causal))

    def feed(self, state: Tensor) -> Tensor:
        """Return `state` after the feed-forward network, residual and LayerNorm around it."""
        return self.norm(state + self.dropout(self.outer(self.activation(self.inner(state)))))

    def finish(self, state: Tensor, context: Tensor) -> Tensor:
        """Compute the rest of the layer after `attend`, position by position."""
        return self.feed(self.join(state, context))


class PreNormBlock(PreNormAttention, TransformerBlock):
    """One pre-LayerNorm layer: x + attention(LayerNorm(x)), then x + feed-forward(LayerNorm(x))."""

    def feed(self, state: Tensor) -> Tensor:
        return state + self.dropout(self.outer(self.activation(self.inner(self.norm(state)))))


ATTENTIONS = {"post": Attention, "pre": PreNormAttention}
BLOCKS = {"post": TransformerBlock, "pre": PreNormBlock}


class Transformer(Trunk):
    """Base of the families: embedding, blocks and head; a family defines `layer_states`."""

    Config = TransformerConfig
    lookup_name = "embedding.token"
    # without them a model whose positions all see alike knows words, but not their order
    needs_positions = True

    def __init__(self, config: TransformerConfig, vocabulary: int):
        super().__init__(config)
        self.tied, self.positions = config.tied, config.positions
        if config.position == "none" and self.needs_positions:
            raise UserError(
                f"arch.position: none, but a {type(self).__name__.lower()} model then knows no"
                " order; set it to learned"
            )
        self.embedding = Embedding(config, vocabulary)
        self.blocks = nn.ModuleList(BLOCKS[config.norm](config) for _ in range(config.layers))
        self.head_dense = nn.Linear(config.dim, config.dim) if config.norm == "post" else None
        self.head_activation = nn.GELU()
        self.head_norm = nn.LayerNorm(config.dim, eps=1e-12)
        self.apply(initialise_module)
        if config.norm == "pre":
            shrink_branches(
                [end for block in self.blocks for end in (block.attention, block.outer)]
            )

    def ragged_states(self, read):
        state, source = self.enter_ragged(read)
        for block in self.blocks:
            seen = block.enter(state if source is None else source)
            asking = seen if source is None else block.enter(state)
            projected = block.query(asking), block.key_value(seen)
            state = block.join(state, read.attend(block.attend, *projected, self.see_rows))
            state = block.feed(state)
        return state

    def enter_ragged(self, read: Ragged) -> tuple[Tensor, Tensor | None]:
        """Return the states (P, D) before the blocks, and what these attend to (None: own)."""
        return self.embedding.at(read.tokens, read.positions), None

    def see_rows(self, width: int) -> dict[str, object]:
        """Return what `Attention.attend` is told of where `width` positions of a sentence look."""
        return {}

    def head(self, states: Tensor) -> Tensor:
        if self.head_dense is not None:
            states = self.head_activation(self.head_dense(states))
        return self.head_norm(states)


def run_blocks(
    blocks: Iterable[TransformerBlock], state: Tensor, mask: Tensor | None = None, causal=False
) -> Iterator[Tensor]:
    """Yield `state` (B, T, D), then that after each block, in which it attends to itself."""
    yield state
    for block in blocks:
        state = block(state, state, mask, causal)
        yield state


def initialise_module(module: nn.Module) -> None:
    """Initialise a module as BERT does: truncated normal of deviation 0.02, biases 0."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.trunc_normal_(module.weight, std=0.02, a=-0.04, b=0.04)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)


@torch.no_grad()
def shrink_branches(ends: Sequence[nn.Linear]) -> None:
    """Scale what ends each residual branch by 1/sqrt(branches), as GPT-2 does."""
    for end in ends:
        end.weight.mul_(len(ends) ** -0.5)


def real_positions(lengths: Tensor, width: int) -> Tensor:
    """Return True where a right-padded position holds a token, (B, T)."""
    return torch.arange(width, device=lengths.device) < lengths[:, None]
