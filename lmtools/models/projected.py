"""Two LSTMs with projections, one from the left and one from the right, over sentences that stand
packed without any padding.

nn.LSTM with `proj_size` does not clip, has no fast kernel on a CPU, and adds to the gradients of
all weights at every step. Here both directions are one product a step, and the gradients of each
weight one product in all, which saves the more the larger the weights are.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from lmtools.models.device import product_dtype

# (gradient, activation), in one pass
sigmoid_backward, tanh_backward = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward


@dataclass(frozen=True)
class Packing:
    """Places of the N positions of a right-padded batch (B, T) that hold words, step after step,
    longest sentences first. `sizes`: how many sentences have a t-th position; `places` (2, N): flat
    positions for a reader from the left and one from the right.
    """

    sizes: list[int]
    places: Tensor
    shape: tuple[int, int]

    @classmethod
    def of(cls, lengths: Tensor, width: int) -> "Packing":
        """Return the packing of sentences of `lengths` (B,) >= 1 in a batch of `width` columns."""
        descending, order = lengths.cpu().sort(descending=True, stable=True)
        step = torch.arange(int(descending[0]))[:, None]
        here = step < descending  # (T, B)
        left, right = order * width + step, order * width + descending - 1 - step
        places = torch.stack([left[here], right[here]]).to(lengths.device, non_blocking=True)
        return cls(here.sum(1).tolist(), places, (len(lengths), width))

    def unpack(self, states: Tensor) -> Tensor:
        """Return states (2, N, D) as (B, 2 T, D): left-to-right, then the other; 0 without word."""
        rows, width = self.shape
        direction = torch.arange(2, device=states.device)[:, None]
        places = self.places + (self.places // width + direction) * width
        empty = states.new_zeros(rows * 2 * width, states.shape[-1])
        return empty.index_copy(0, places.flatten(), states.flatten(0, 1)).view(rows, 2 * width, -1)

    @cached_property
    def steps(self) -> list[tuple[slice, slice]]:
        """Return each step's rows among the N, and those of the same sentences one step before."""
        result, first, before = [], 0, 0
        for number, size in enumerate(self.sizes):
            old = slice(before, before + size) if number else slice(0, 0)
            result.append((slice(first, first + size), old))
            before, first = first, first + size
        return result


class Steps(torch.autograd.Function):
    """The outputs (2, N, D) of both LSTMs for inputs x (2, N, D); matrix products are in x's
    precision, cells in float32 at least.

    inputs (2, D, 4 U), bias (2, 1, 4 U), recurrent (2, D, 4 U), projection (2, U, D), for the gates
    input, forget, cell, output. A clip of 0 is none; what is clipped has no gradient.
    """

    @staticmethod
    def forward(ctx, x, inputs, bias, recurrent, projection, steps, cell_clip, clip):
        gates = torch.baddbmm(bias, x, inputs)
        cells = x.new_empty(
            *x.shape[:2], projection.shape[1], dtype=torch.promote_types(x.dtype, torch.float32)
        )
        outputs = torch.empty_like(x)
        for rows, before in steps:
            if before.stop:
                gates[:, rows].baddbmm_(outputs[:, before], recurrent)
            i, f, g, o = activate_gates(gates[:, rows], cells.dtype)
            cell = torch.mul(i, g, out=cells[:, rows])
            if before.stop:
                cell.addcmul_(f, cells[:, before])
            read = o * clamp_values(cell, cell_clip).tanh()
            outputs[:, rows] = clamp_values(torch.bmm(read.to(x.dtype), projection), clip)
        ctx.save_for_backward(x, inputs, recurrent, projection, gates, cells, outputs)
        ctx.rest = steps, cell_clip, clip
        return outputs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        x, inputs, recurrent, projection, gates, cells, outputs = ctx.saved_tensors
        steps, cell_clip, clip = ctx.rest
        d_gates, d_outputs, read = torch.empty_like(gates), grad.clone(), x.new_empty(cells.shape)
        d_later = cells[:, :0]  # the gradient of the cells (2, rows, U) by way of the step after
        for rows, before in reversed(steps):
            d_output = pass_gradient(d_outputs[:, rows], outputs[:, rows], clip)
            d_read = torch.bmm(d_output, projection.mT).to(cells.dtype)
            now = gates[:, rows].to(cells.dtype), cells[:, rows], cells[:, before]
            read[:, rows], d_gates[:, rows], d_later = cell_backward(
                d_read, d_later, *now, cell_clip
            )
            if before.stop:
                d_outputs[:, before].baddbmm_(d_gates[:, rows], recurrent.mT)
        old = torch.cat([outputs[:, before] for _, before in steps], dim=1)
        first = steps[0][0].stop  # the first step has no step before
        return (
            torch.bmm(d_gates, inputs.mT), torch.bmm(x.mT, d_gates), d_gates.sum(1, keepdim=True),
            torch.bmm(old.mT, d_gates[:, first:]), torch.bmm(read.mT, d_outputs), None, None, None,
        )  # fmt: skip


def activate_gates(gates: Tensor, kind: torch.dtype) -> tuple[Tensor, ...]:
    """Return a step's gates (2, rows, U) activated in place; computed in one dtype, `kind`."""
    values = gates.to(kind)
    i, f, g, o = values.chunk(4, dim=-1)
    activations = i.sigmoid_(), f.sigmoid_(), g.tanh_(), o.sigmoid_()
    if values is not gates:
        gates.copy_(values)
    return activations


def cell_backward(
    d_read, d_later, gates, cell, old_cell, cell_clip
) -> tuple[Tensor, Tensor, Tensor]:
    """Return of one step: o tanh(c), which the projection reads; the gradient of the gates before
    their activation; that of the cells before.

    `d_read` (2, rows, U) is the gradient of o tanh(c), `d_later` (2, fewer rows, U) that of the
    cells by way of the next step.
    """
    (i, f, g, o), d_gates, tanh = gates.chunk(4, dim=-1), torch.empty_like(gates), cell.tanh()
    d_i, d_f, d_g, d_o = d_gates.chunk(4, dim=-1)
    d_cell = tanh_backward(d_read * o, tanh)
    d_cell[:, : d_later.shape[1]] += d_later
    pass_gradient(d_cell, cell, cell_clip)
    sigmoid_backward.grad_input(d_cell * g, i, grad_input=d_i)
    tanh_backward.grad_input(d_cell * i, g, grad_input=d_g)
    sigmoid_backward.grad_input(d_read * tanh, o, grad_input=d_o)
    if old_cell.shape[1]:
        sigmoid_backward.grad_input(d_cell * old_cell, f, grad_input=d_f)
    else:
        d_f.zero_()
    return o * tanh, d_gates, d_cell.mul_(f)


def clamp_values(values: Tensor, clip: float) -> Tensor:
    """Return the values, in place, within `clip` of 0, or as they are where it is 0."""
    return values.clamp_(-clip, clip) if clip else values


def pass_gradient(gradient: Tensor, values: Tensor, clip: float) -> Tensor:
    """Return the gradient, in place, 0 where the values were clipped."""
    return gradient.mul_(values.abs() < clip) if clip else gradient


class TwoWayLstm(nn.Module):
    """One layer of both directions with separate weights: packed (2, N, D) to (2, N, D)."""

    def __init__(self, dim: int, units: int, cell_clip: float, clip: float):
        super().__init__()
        self.clips = cell_clip, clip
        self.inputs = nn.Parameter(torch.empty(2, dim, 4 * units))
        self.recurrent = nn.Parameter(torch.empty(2, dim, 4 * units))
        # a vector, so that no weight decay applies to it
        self.bias = nn.Parameter(torch.zeros(2 * 4 * units))
        self.projection = nn.Parameter(torch.empty(2, units, dim))
        # Glorot's, of input and recurrent matrix as one
        bound = math.sqrt(6 / (2 * dim + 4 * units))
        nn.init.uniform_(self.inputs, -bound, bound)
        nn.init.uniform_(self.recurrent, -bound, bound)
        bound = math.sqrt(6 / (units + dim))
        nn.init.uniform_(self.projection, -bound, bound)
        with torch.no_grad():
            self.bias.view(2, 4, units)[:, 1] = 1.0  # remember at first

    def forward(self, x: Tensor, packing: Packing) -> Tensor:
        kind = product_dtype(x)
        parts = x, self.inputs, self.bias.view(2, 1, -1), self.recurrent, self.projection
        return Steps.apply(*(part.to(kind) for part in parts), packing.steps, *self.clips)
