"""Base of encoders of contextual states: vectors made of states, windows of long sentences,
pooling.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from lmtools.device import autocast
from lmtools.embed.base import Encoder
from lmtools.embed.pooling import POOLS
from lmtools.errors import UserError
from lmtools.models.base import Trunk
from lmtools.windows import cut_windows


class PoolingOptions(NamedTuple):
    """Options of pooling: how sentence vectors are made of a model's states.

    `layers`: `last`, `all` or numbers, 0 the embedding layer. `pool`: a name of POOLS.
    `boundaries`: mean and max take the boundary tokens in. `masked`: of masked models, each
    position's state is from a copy in which it alone is masked; else from the intact input.
    """

    layers: str | tuple[int, ...] = "last"
    pool: str = "mean"
    boundaries: bool = False
    masked: bool = False

    def choose_layers(self, last: int, source: str) -> tuple[int, ...]:
        """Return the numbers of the layers of a model whose last one is `last`; UserError for those
        that are not there.
        """
        layers = {"last": (last,), "all": tuple(range(last + 1))}.get(self.layers, self.layers)
        missing = [layer for layer in layers if not 0 <= layer <= last]
        if missing or not layers:
            raise UserError(
                f"{source}: has the layers 0 (embedding) to {last}, no"
                f" {', '.join(map(str, missing)) or 'empty list'}; choose of these"
            )
        if self.masked and 0 in layers:
            raise UserError(
                f"{source}: layer 0 of a masked position is the mask's own embedding in any"
                " sentence; leave it or --masked out"
            )
        return layers

    @property
    def signature(self) -> dict[str, str]:
        """Return the pooling and the options that are not the usual ones, by name."""
        flags = {"boundaries": self.boundaries, "masked": self.masked}
        return {"pool": self.pool} | {name: "yes" for name, value in flags.items() if value}


class BatchStates(NamedTuple):
    """The states of a batch: pairs (layer, states (B, T, D)), lengths (B,), and how many boundary
    tokens come first and last.
    """

    states: Iterator[tuple[int, Tensor]]
    lengths: Tensor
    first: int
    last: int


class ContextualEncoder(Encoder):
    """Base of encoders of contextual states; a kind of model defines `read` and the rest."""

    pooling: PoolingOptions
    longest: int
    device: torch.device
    precision: str
    trunk: Trunk

    def take_trunk(
        self, trunk: Trunk, pooling: PoolingOptions, source: str, masks: bool, ends: bool
    ) -> None:
        """Make vectors of the trunk's states; `masks`: there is a mask to predict from, `ends`: the
        end is read too. UserError for what such a model has not.
        """
        if pooling.masked and not masks:
            raise UserError(f"{source}: the model has no mask to predict from; leave --masked out")
        if pooling.pool == "cls" and not ends:
            raise UserError(
                f"{source}: the first state of a left-to-right model has read nothing; use"
                " --pool eos"
            )
        self.trunk, self.pooling = trunk, pooling
        self.layers = pooling.choose_layers(trunk.depth, source)

    def chosen_states(self, read: Sequence[Tensor], mask: int) -> Iterator[tuple[int, Tensor]]:
        """Layers with their states, of what the trunk reads; of masked positions if asked for."""
        if self.pooling.masked:
            return self.trunk.masked_layers(*read, mask, self.layers)
        return up_to(max(self.layers), self.trunk.layer_states(*read))

    def read(self, sentences: Sequence[tuple]) -> BatchStates:
        """Compute the states of sentences that fit the positions."""
        raise NotImplementedError

    @torch.inference_mode()
    def vectors(self, sentences: Sequence[tuple]) -> np.ndarray:
        """See Encoder; a sentence that does not fit the positions is read in windows, each token
        where it has most context.
        """
        cuts = [cut_windows(len(s), self.longest) for s in sentences]
        parts = [
            (s[begin:end], first, last)
            for s, some in zip(sentences, cuts, strict=True)
            for begin, end, first, last in some
        ]
        vectors, counts = self.pool_parts(parts)  # (P, layers, D), (P,)
        if len(parts) > len(sentences):
            merge, own = POOLS[self.pooling.pool].windows, list(map(len, cuts))
            each = zip(vectors.flatten(1).split(own), counts.split(own), strict=True)
            vectors = torch.stack([merge(*some) for some in each]).unflatten(1, vectors.shape[1:])
        return vectors.cpu().numpy()

    def pool_parts(self, parts: Sequence[tuple[tuple, int, int]]) -> tuple[Tensor, Tensor]:
        """Vectors (P, layers, D) of windows (tokens, first, last), of whose tokens first:last
        count, and how many positions counted.
        """
        with autocast(self.device, self.precision):
            batch = self.read([part for part, _, _ in parts])
            bounds = torch.tensor(
                [(first, min(last, len(part))) for part, first, last in parts], device=self.device
            )
            at = torch.arange(int(batch.lengths.max()), device=self.device)
            inside = (at >= batch.first + bounds[:, :1]) & (at < batch.first + bounds[:, 1:])
            if self.pooling.boundaries:
                inside |= (at < batch.first) | (
                    (at >= batch.lengths[:, None] - batch.last) & (at < batch.lengths[:, None])
                )
            pool = POOLS[self.pooling.pool].states
            found = {
                layer: pool(states.float(), inside, batch.lengths)
                for layer, states in batch.states
                if layer in self.layers
            }
        width = max(vectors.shape[1] for vectors in found.values())
        made = [F.pad(found[layer], (0, width - found[layer].shape[1])) for layer in self.layers]
        return torch.stack(made, dim=1), inside.sum(1)


def up_to(deepest: int, states: Iterator[Tensor]) -> Iterator[tuple[int, Tensor]]:
    """Yield the states of each layer with its number; what is above the deepest is not computed."""
    for number, state in enumerate(states):
        yield number, state
        if number == deepest:
            return
