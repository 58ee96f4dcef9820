"""biLM: a masked language model (BERT's architecture), with a fast exact pseudo-log-likelihood
pass.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from lmtools.models.transformer import Transformer, TransformerBlock, real_positions, run_blocks


class Masked(Transformer):
    """State t has seen every token of the corrupted input and predicts the original token t."""

    title = "biLM (masked)"
    objective = "masked"
    masks = True
    ragged = True

    def layer_states(self, tokens: Tensor, lengths: Tensor) -> Iterator[Tensor]:
        mask = real_positions(lengths, tokens.shape[1])[:, None, None, :]
        return run_blocks(self.blocks, self.embedding(tokens), mask)

    def masked_states(self, tokens, mask_id, depth=None):
        """Return the states of T forward passes (a position masked in each), less what they share
        and what nobody reads: the first layer's projections of the unmasked tokens are computed
        once, and the last layer that is computed has queries and feed-forward only at the masked
        position. At three layers that is 0.64 of the work.
        """
        intact, mask = self.embedding(tokens), self.embedding.constant(mask_id, tokens.shape[1])
        blocks = self.blocks[:depth]
        if len(blocks) == 1:
            return last_layer(blocks[0], mask_copies(intact, mask)).view_as(intact)
        first = blocks[0]
        asking, masked = first.enter(intact), first.enter(mask)
        projected = [mask_copies(f(asking), f(masked)) for f in (first.query, first.key_value)]
        # (B*T, T, D): copy i masks position i
        state = first.finish(mask_copies(intact, mask), first.attend(*projected))
        for block in blocks[1:-1]:
            state = block(state, state)
        return last_layer(blocks[-1], state).view_as(intact)


def last_layer(block: TransformerBlock, state: Tensor) -> Tensor:
    """Return the layer's output where copy i masks position i, (B*T, T, D) -> (B*T, D)."""
    copy = torch.arange(state.shape[0], device=state.device)
    masked = state[copy, copy % state.shape[1]][:, None]  # (B*T, 1, D)
    return block(masked, state)[:, 0]


def mask_copies(intact: Tensor, mask: Tensor) -> Tensor:
    """Make T copies of each sentence, the i-th with row i masked: (B, T, D) -> (B*T, T, D)."""
    batch, width, dim = intact.shape
    repeated = intact[:, None].expand(batch, width, width, dim).clone()
    diagonal = torch.arange(width, device=intact.device)
    repeated[:, diagonal, diagonal] = mask
    return repeated.view(batch * width, width, dim)
