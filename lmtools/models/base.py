"""Interface of trunks: ids in, states out; the output layer (lmtools/models/outputs) is apart.

A new family is a file with a Trunk and a name in lmtools.models.MODELS.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from torch import Tensor, nn

from lmtools.base.errors import UserError
from lmtools.models.memory import Memory
from lmtools.models.ragged import Ragged


class Trunk(nn.Module, ABC):
    """Model that makes states out of ids, layer by layer, by the family's own `Config` (from the
    settings `arch`) and the number of ids.

    It reads (`examples.read`) right-padded ids (B, T) and their true lengths (B,); of a
    two-way family the ids are places in a third tensor, the spellings (U, L) of the batch's words.
    A family of `pairs` reads source ids (B, S) and their lengths (B,) behind those of the targets.
    """

    Config: ClassVar[type]
    title: ClassVar[str]  # of the family, for people
    # the one that it can be trained with: others let it see what it predicts, or are never scored
    objective: ClassVar[str] = "causal"
    masks: ClassVar[bool] = False  # it has `masked_states`
    ragged: ClassVar[bool] = False  # it has `ragged_states`
    positions: int = sys.maxsize  # the longest input, with the boundary tokens
    # of sentences that go through as one tree of prefixes (`memory`)
    tree_tokens: ClassVar[int] = 2048
    tied: bool = False  # the input embedding is the output matrix too
    # its parts: the table of input embeddings, the layers above it
    lookup_name: ClassVar[str] = "embedding"
    stack_name: ClassVar[str] = "blocks"

    def __init__(self, config):
        super().__init__()
        self.config = config

    @property
    def lookup(self) -> nn.Embedding:
        """Return the table of input embeddings, (V, columns)."""
        return self.get_submodule(self.lookup_name)

    @property
    def shared(self) -> nn.Parameter | None:
        """Return the table's matrix where it is the output layer's too, else None."""
        return self.lookup.weight if self.tied else None

    @property
    def width(self) -> int:
        """Return the number of columns of the output matrix."""
        return self.config.dim

    @property
    def stack(self) -> nn.ModuleList:
        """Return the layers above the embedding, from the first."""
        return self.get_submodule(self.stack_name)

    @property
    def depth(self) -> int:
        """Return the number of layers above the embedding."""
        return len(self.stack)

    @abstractmethod
    def layer_states(self, *read: Tensor) -> Iterator[Tensor]:
        """Yield the states (B, T, columns) of the embedding and each layer, lazily."""

    def hidden(self, *read: Tensor) -> Tensor:
        """Return the last layer's states; two-way: (B, 2 T, width), left-to-right first."""
        return last_state(self.layer_states(*read))

    def head(self, states: Tensor) -> Tensor:
        """Return states (N, columns) ready for the output matrix, (N, width)."""
        return states

    def ragged_states(self, read: Ragged) -> Tensor:
        """Return the last layer's states (P, columns) of sentences without padding."""
        raise NotImplementedError

    def masked_states(self, tokens: Tensor, mask_id: int, depth: int | None = None) -> Tensor:
        """Return a layer's (None: the last) state at i where only i is masked: (B, T, D)."""
        raise NotImplementedError

    def masked_layers(
        self, tokens: Tensor, lengths: Tensor, mask_id: int, layers: Sequence[int]
    ) -> Iterator[tuple[int, Tensor]]:
        """Yield `masked_states` (B, T, D) of padded tokens by layer, zeros at padding."""
        for layer in layers:
            states = None
            # sentences of one length go through together, without padding
            for length in lengths.unique().tolist():
                rows = (lengths == length).nonzero()[:, 0]
                masked = self.masked_states(tokens[rows, :length], mask_id, layer).float()
                if states is None:
                    states = masked.new_zeros((*tokens.shape, masked.shape[-1]))
                states[rows, :length] = masked
            yield layer, states

    def chosen_states(
        self, read: Sequence[Tensor], layers: Sequence[int], mask_id: int | None = None
    ) -> Iterator[tuple[int, Tensor]]:
        """Yield numbers and states of layers up to the last of `layers`, masked or not."""
        if mask_id is not None:
            yield from self.masked_layers(*read, mask_id, layers)
            return
        for number, states in enumerate(self.layer_states(*read)):
            yield number, states
            if number == max(layers):
                return

    def memory(self) -> Memory:
        """Return an empty memory of prefixes, of left-to-right families."""
        raise UserError(
            f"{self.title}: keeps no prefixes (it reads both sides of a word or has no memory of"
            " them); use another left-to-right model"
        )

    def describe(self) -> str:
        """Return the addition to the model's size in a line about it; empty where there is none."""
        return ""


def last_state(states: Iterable[Tensor]) -> Tensor:
    """Return the last of the states; those before it can go as soon as it is there."""
    state = None
    for state in states:  # noqa: B007
        pass
    assert state is not None
    return state
