"""ELMo (Peters et al. 2018) and subword ELMo (Li et al. 2019): words spelled by characters or
pieces, read by an LSTM from either side.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional as F

from lmtools.base.config import check_numbers
from lmtools.base.errors import UserError
from lmtools.models.base import Trunk, last_state
from lmtools.models.dropout import Dropout
from lmtools.models.projected import Packing, TwoWayLstm
from lmtools.models.spelling import Speller

PUBLISHED = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


@dataclass(frozen=True)
class ElmoConfig:
    """The size of an ELMo; the defaults are its paper's, which Subword ELMo takes over."""

    piece_dim: int = 16  # of the embedding of a character or piece
    # pairs: how many pieces a filter sees, how many such filters
    filters: tuple[tuple[int, ...], ...] = PUBLISHED
    highway: int = 2  # layers
    dim: int = 512  # of a word's vector and of each direction's states
    units: int = 4096
    layers: int = 2
    dropout: float = 0.1  # on what each LSTM reads, and on the states before the output layer
    cell_clip: float = 3.0  # cells stay within it; 0: wherever they go
    projection_clip: float = 3.0  # so do states

    def __post_init__(self):
        if not self.filters or any(len(pair) != 2 or min(pair) < 1 for pair in self.filters):
            raise UserError(
                f"arch.filters: {self.filters} are no pairs of width and count; write them as in"
                " [[1, 32], [2, 64]]"
            )
        check_numbers(self, "arch.", "piece_dim", "dim", "units", "layers")


class Elmo(Trunk):
    """The left-to-right state of position t has read words 0..t, the right-to-left one the last
    word down to t.

    Inputs (B, T) are places in `spellings` (U, L), right-padded piece ids of each distinct word.
    Padding has no part in any computation.
    """

    Config = ElmoConfig
    title = "ELMo"
    objective = "two-way"
    two_way = True
    lookup_name, stack_name = "speller.pieces", "lstms"

    def __init__(self, config: ElmoConfig, vocabulary: int):
        super().__init__(config)
        self.speller = Speller(vocabulary, config)
        sizes = config.dim, config.units, config.cell_clip, config.projection_clip
        self.lstms = nn.ModuleList(TwoWayLstm(*sizes) for _ in range(config.layers))
        self.dropout = Dropout(config.dropout)

    def describe(self):
        widths = [width for width, _ in self.config.filters]
        return (
            f"{sum(count for _, count in self.config.filters):,} filters over {min(widths)} to"
            f" {max(widths)} pieces of a word"
        )

    def hidden(self, inputs: Tensor, lengths: Tensor, spellings: Tensor) -> Tensor:
        """Return the last layer's states (B, 2 T, D): those of the left-to-right LSTM, then those
        of the right-to-left one; 0 at padding.
        """
        packing = Packing.of(lengths, inputs.shape[1])
        return packing.unpack(last_state(self.passes(inputs, packing, spellings)))

    def layer_states(self, inputs: Tensor, lengths: Tensor, spellings: Tensor) -> Iterator[Tensor]:
        """Yield word vectors (B, T, 2 D) of each layer, left-to-right ++ right-to-left: the input
        twice, then each LSTM; 0 at padding.
        """
        packing = Packing.of(lengths, inputs.shape[1])
        for states in self.passes(inputs, packing, spellings):
            yield packing.unpack(states).unflatten(1, (2, -1)).transpose(1, 2).flatten(2)

    def passes(self, inputs: Tensor, packing: Packing, spellings: Tensor) -> Iterator[Tensor]:
        """Yield the packed states (2, N, D) of the input and of each layer; from the second on, a
        layer's input is added to its output.
        """
        state = F.embedding(inputs.flatten()[packing.places], self.speller(spellings))
        yield state
        for number, layer in enumerate(self.lstms):
            read = self.dropout(state)
            state = layer(read, packing) + (read if number else 0)
            yield state

    def head(self, states: Tensor) -> Tensor:
        return self.dropout(states)

    @classmethod
    def arch_of_size(cls, layers, dim):
        return {"layers": layers, "dim": dim, "units": dim}
