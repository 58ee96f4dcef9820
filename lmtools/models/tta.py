"""T-TA, the Transformer-based text autoencoder (Shin et al. 2020): every token predicted from all
the others in one pass.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from lmtools.models.transformer import Transformer, real_positions
from lmtools.subword import MASK


class Tta(Transformer):
    """State t has seen every token but t and predicts token t.

    Diagonal masking: position t never attends to t. Input isolation: keys and values stay the
    embedding in every layer, so that t cannot come back through a neighbour (`norm: pre`: each
    layer's own LayerNorm of it). The first query is the embedding of the mask at each position, the
    same for every sentence.
    """

    title = "T-TA"
    objective = "autoencoding"

    def layer_states(self, tokens: Tensor, lengths: Tensor) -> Iterator[Tensor]:
        batch, width = tokens.shape
        others = ~torch.eye(width, dtype=torch.bool, device=tokens.device)
        mask = (real_positions(lengths, width)[:, None, :] & others)[:, None]  # (B, 1, T, T)
        source = self.embedding(tokens)
        yield source
        state = self.embedding.constant(MASK, width).expand(batch, width, -1)
        for block in self.blocks:
            state = block(state, source, mask)
            yield state
