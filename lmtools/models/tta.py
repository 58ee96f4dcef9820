"""T-TA, the Transformer-based text autoencoder (Shin et al. 2020): every token predicted from all
the others in one pass.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from lmtools.base.config import check_choices
from lmtools.models.transformer import Transformer, TransformerConfig, real_positions
from lmtools.text.subword import MASK

QUERIES = ("mask", "position")


@dataclass(frozen=True)
class TtaConfig(TransformerConfig):
    """Size of a Transformer, and the start of the first layer's queries."""

    # the embedding of the mask at each position, as the authors' code has it; or of the position
    # alone, as the paper prints it (Q = P): no better on the mini corpora, where seeds matter more
    query: str = "mask"

    def __post_init__(self):
        super().__post_init__()
        check_choices(self, "arch.", query=QUERIES)


class Tta(Transformer):
    """State t has seen every token but t and predicts token t.

    Diagonal masking (Eq. 2): position t never attends to t. Input isolation: keys and values stay
    the embedding X + P in every layer, so that t cannot come back through a neighbour (`norm: pre`:
    each layer's own LayerNorm of it). The first query is the same for every sentence; the residual
    sums (Eq. 1) go on from it.
    """

    title = "T-TA"
    objective = "autoencoding"
    ragged = True
    Config = TtaConfig

    def layer_states(self, tokens: Tensor, lengths: Tensor) -> Iterator[Tensor]:
        batch, width = tokens.shape
        others = see_others(width, tokens.device)
        mask = (real_positions(lengths, width)[:, None, :] & others)[:, None]  # (B, 1, T, T)
        source = self.embedding(tokens)
        yield source
        state = self.first_query(width).expand(batch, width, -1)
        for block in self.blocks:
            state = block(state, source, mask)
            yield state

    def enter_ragged(self, read):
        source = self.embedding.at(read.tokens, read.positions)
        return self.first_query(int(read.lengths.max()))[read.positions], source

    def see_rows(self, width):
        return {"mask": see_others(width, self.embedding.token.weight.device)}

    def first_query(self, length: int) -> Tensor:
        """Return the queries of the first layer, one a position, (T, D)."""
        if self.config.query == "position":
            return self.embedding.without_token(length)
        return self.embedding.constant(MASK, length)


def see_others(width: int, device: torch.device) -> Tensor:
    """Return where a position may look: anywhere but at itself, (T, T)."""
    place = torch.arange(width, device=device)
    return place[:, None] != place
