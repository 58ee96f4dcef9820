"""uniLM: a left-to-right Transformer."""

from torch import Tensor

from lmtools.models.transformer import Transformer


class Causal(Transformer):
    """State t has seen tokens 0..t and predicts token t+1."""

    def hidden(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        state = self.embedding(tokens)
        for block in self.blocks:  # padding is on the right, where no real position looks
            state = block(state, state, causal=True)
        return state
