"""Pooling: from the states of a sentence's positions to one vector by mean, maximum, end or
beginning.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from lmtools.base.errors import UserError


class Pool(NamedTuple):
    """One way to pool, for batches and, of a text that is read in several windows, over these.

    `states(states, inside, lengths)`: (B, T, D), which positions count (B, T) and how many there
    are (B,) -> (B, D). `windows(values, counts)`: the windows' vectors (P, D) and how many
    positions counted in each (P,) -> (D,).
    """

    states: Callable[[Tensor, Tensor, Tensor], Tensor]
    windows: Callable[[Tensor, Tensor], Tensor]
    ends: bool = False  # it takes a boundary token's state, whatever counts


def mean(states: Tensor, inside: Tensor, lengths: Tensor) -> Tensor:
    """Return the mean of the positions that count; zeros where none does."""
    counted = inside.to(states.dtype)
    return torch.bmm(counted[:, None], states)[:, 0] / counted.sum(1, keepdim=True).clamp(min=1)


def maximum(states: Tensor, inside: Tensor, lengths: Tensor) -> Tensor:
    """Return the greatest value of each dimension over what counts; zeros without."""
    greatest = states.masked_fill(~inside[..., None], -torch.inf).amax(1)
    return greatest.where(inside.any(1, keepdim=True), 0.0)


def end(states: Tensor, inside: Tensor, lengths: Tensor) -> Tensor:
    """Return the last position: the end, or the state that predicts it."""
    return states[torch.arange(len(states), device=states.device), lengths - 1]


def beginning(states: Tensor, inside: Tensor, lengths: Tensor) -> Tensor:
    """Return the first position: BOS or [CLS]."""
    return states[:, 0]


POOLS = {
    "mean": Pool(
        mean, lambda values, counts: (values * counts[:, None]).sum(0) / counts.sum().clamp(min=1)
    ),
    "max": Pool(
        maximum,
        lambda values, counts: (
            values[counts > 0].amax(0) if bool((counts > 0).any()) else values[0]
        ),
    ),
    "eos": Pool(end, lambda values, counts: values[-1], ends=True),
    "cls": Pool(beginning, lambda values, counts: values[0], ends=True),
}


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
        """Return the layers' numbers, of which `last` is the last; UserError for others."""
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
        flags = {"boundaries": self.boundaries, "masked": self.masked}
        return {"pool": self.pool} | {name: "yes" for name, value in flags.items() if value}
