"""ELMo (Peters et al. 2018) and subword ELMo (Li et al. 2019): words spelled by characters or
pieces, read by an LSTM from either side.

Words are spelled by convolutions over pieces, the maximum over a word's windows, highway layers, a
projection, the encoder of Jozefowicz et al. 2016 as ELMo has it (Peters et al. 2018). A filter of
width w sees a word of n pieces through the n - w + 1 windows that lie inside it, or through one,
filled up with zeros, where the word is shorter than the filter. Windows that padding would make are
never computed: all the windows there are stand in one matrix, the first of every word, then the
second of those that have one ...
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmtools.base.config import check_numbers
from lmtools.base.errors import UserError
from lmtools.base.grammar import Count, Share
from lmtools.models.base import Trunk, last_state
from lmtools.models.device import Dropout
from lmtools.models.objectives import TwoWay
from lmtools.models.projected import Packing, TwoWayLstm
from lmtools.text.subword import PAD

# the bias that a highway's gate starts with, as in ELMo's code: 0.88 of the input is carried
# through
CARRY = -2.0
PUBLISHED = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


class Largest(torch.autograd.Function):
    """The maximum over each word's windows, (U, F), of values (M, F), the gradient to the first of
    equals. `sizes`: how many words have a first window, a second ...
    """

    @staticmethod
    def forward(ctx, values: Tensor, sizes: Sequence[int]) -> Tensor:
        first, *later = values.split(sizes)
        best, winner = first.clone(), torch.zeros_like(first, dtype=torch.int16)
        for number, window in enumerate(later, 1):
            size = len(window)
            winner[:size].masked_fill_(window > best[:size], number)
            torch.maximum(best[:size], window, out=best[:size])
        ctx.save_for_backward(winner)
        ctx.sizes = sizes
        return best

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad: Tensor):
        (winner,) = ctx.saved_tensors
        every = grad.new_empty(sum(ctx.sizes), grad.shape[1])
        for number, window in enumerate(every.split(ctx.sizes)):
            torch.mul(grad[: len(window)], winner[: len(window)] == number, out=window)
        return every, None


class SpellingConvolution(nn.Module):
    """Convolution of `count` filters that see `width` pieces at once."""

    def __init__(self, width: int, piece_dim: int, count: int):
        super().__init__()
        self.width = width
        self.filters = nn.Linear(width * piece_dim, count)
        nn.init.uniform_(self.filters.weight, -0.05, 0.05)
        nn.init.zeros_(self.filters.bias)

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Return the largest value of each filter, (U, count), of `vectors` (U, L, piece_dim) that
        are 0 after each word's end.

        `lengths` (U,), on the CPU, descend; L is at least the longest word and the width together,
        less one.
        """
        windows = (lengths - self.width).clamp(min=0) + 1
        here = torch.arange(int(windows[0]))[:, None] < windows  # (windows of the longest word, U)
        number, word = here.nonzero(as_tuple=True)
        # (M, width)
        places = (word * vectors.shape[1] + number)[:, None] + torch.arange(self.width)
        # (M, width * piece_dim)
        seen = F.embedding(
            places.to(vectors.device, non_blocking=True), vectors.flatten(0, 1)
        ).flatten(1)
        return Largest.apply(self.filters(seen), here.sum(1).tolist())


class Highway(nn.Module):
    """g relu(A x + a) + (1 - g) x, g = sigmoid(B x + b), (N, D) (Srivastava et al. 2015)."""

    def __init__(self, dim: int):
        super().__init__()
        self.both = nn.Linear(dim, 2 * dim)  # A above B
        nn.init.normal_(self.both.weight, std=dim**-0.5)
        with torch.no_grad():
            self.both.bias.view(2, dim).copy_(torch.tensor([[0.0], [CARRY]]))

    def forward(self, x: Tensor) -> Tensor:
        changed, gate = self.both(x).chunk(2, dim=-1)
        return torch.lerp(x.to(changed.dtype), changed.relu(), gate.sigmoid())


class Speller(nn.Module):
    """Words (U, L) of piece ids, right-padded with PAD, to vectors (U, dim): Eqs. 1 and 2 of Li et
    al. 2019, of the sizes in `config`, an ElmoConfig. How much padding follows changes no bit of
    them.
    """

    def __init__(self, vocabulary: int, config):
        super().__init__()
        self.pieces = nn.Embedding(vocabulary, config.piece_dim)
        self.convolutions = nn.ModuleList(
            SpellingConvolution(width, config.piece_dim, count) for width, count in config.filters
        )
        channels = sum(count for _, count in config.filters)
        self.highways = nn.Sequential(*(Highway(channels) for _ in range(config.highway)))
        self.projection = nn.Linear(channels, config.dim)
        nn.init.uniform_(self.pieces.weight, -1.0, 1.0)
        nn.init.normal_(self.projection.weight, std=channels**-0.5)
        nn.init.zeros_(self.projection.bias)

    def forward(self, spellings: Tensor) -> Tensor:
        lengths, order = (spellings != PAD).sum(1).cpu().sort(descending=True, stable=True)
        place = order.argsort().to(spellings.device, non_blocking=True)
        return self.projection(
            self.highways(self.pool_filters(spellings[order.to(spellings.device)], lengths))
        )[place]

    def pool_filters(self, spellings: Tensor, lengths: Tensor) -> Tensor:
        """Return maxima of filters over each word, by descending `lengths`, (U, channels)."""
        spellings = spellings[:, : max(1, int(lengths[0]))]
        # (U, L, piece_dim): zeros after the end
        vectors = self.pieces(spellings) * (spellings != PAD).unsqueeze(-1)
        widest = max(convolution.width for convolution in self.convolutions)
        vectors = F.pad(vectors, (0, 0, 0, widest - 1))
        return torch.cat(
            [convolution(vectors, lengths) for convolution in self.convolutions], dim=1
        ).relu()


@dataclass(frozen=True)
class ElmoConfig:
    """The size of an ELMo; the defaults are its paper's, which Subword ELMo takes over."""

    piece_dim: Count = 16  # of the embedding of a character or piece
    # pairs: how many pieces a filter sees, how many such filters
    filters: tuple[tuple[int, ...], ...] = PUBLISHED
    highway: int = 2  # layers
    dim: Count = 512  # of a word's vector and of each direction's states
    units: Count = 4096
    layers: Count = 2
    dropout: Share = 0.1  # on what each LSTM reads, and on the states before the output layer
    cell_clip: float = 3.0  # cells stay within it; 0: wherever they go
    projection_clip: float = 3.0  # so do states

    def __post_init__(self):
        widths = [pair[0] for pair in self.filters if len(pair) == 2 and min(pair) >= 1]
        if not 0 < len(widths) == len(self.filters) or max(widths) > TwoWay.longest:
            raise UserError(
                f"arch.filters: {self.filters} are no pairs of width (at most {TwoWay.longest}) and"
                " count; write them as in [[1, 32], [2, 64]]"
            )
        check_numbers(self, "arch.")


class Elmo(Trunk):
    """The left-to-right state of position t has read words 0..t, the right-to-left one the last
    word down to t.

    Inputs (B, T) are places in `spellings` (U, L), right-padded piece ids of each distinct word.
    Padding has no part in any computation.
    """

    Config = ElmoConfig
    title = "ELMo"
    objective = "two-way"
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
        """Return states (B, 2 T, D) of the left-to-right LSTM, then of the other; 0 at padding."""
        packing = Packing.of(lengths, inputs.shape[1])
        return packing.unpack(last_state(self.passes(inputs, packing, spellings)))

    def layer_states(self, inputs: Tensor, lengths: Tensor, spellings: Tensor) -> Iterator[Tensor]:
        """Yield (B, T, 2 D) of each layer, both directions: the input twice, then each LSTM."""
        packing = Packing.of(lengths, inputs.shape[1])
        for states in self.passes(inputs, packing, spellings):
            yield packing.unpack(states).unflatten(1, (2, -1)).transpose(1, 2).flatten(2)

    def passes(self, inputs: Tensor, packing: Packing, spellings: Tensor) -> Iterator[Tensor]:
        """Yield packed states (2, N, D) of the input and layers, residual from the second."""
        state = F.embedding(inputs.flatten()[packing.places], self.speller(spellings))
        yield state
        for number, layer in enumerate(self.lstms):
            read = self.dropout(state)
            state = layer(read, packing) + (read if number else 0)
            yield state

    def head(self, states: Tensor) -> Tensor:
        return self.dropout(states)
