"""Weight-normalised causal convolutions and the gates after them, of which gated convolutional
models are made.

Of Dauphin et al. 2017 are GLU (Eq. 1), whose gradient (Eq. 3) has a part that no gate scales down,
bilinear, linear and ReLU units, and GTU for comparison (Eq. 2: both factors scale its gradient).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmtools.models.convolution import causal_convolution
from lmtools.models.device import product_dtype


@dataclass(frozen=True)
class Gate:
    """Gate of a layer: its output as a function of convolutions X*W + b and, where there are two,
    X*V + c; `gain` is Kaiming's.

    Convolutions of variance `gain` make an output of the variance that a linear layer of variance 1
    has; where a function saturates, as far as it is its slope at 0.
    """

    branches: int
    gain: float
    function: Callable[[Tensor], Tensor]


def gate_halves(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return a function of two convolutions, of both side by side."""
    return lambda both: function(*both.chunk(2, -1))


GATES = {
    # sigmoid(0) = 1/2 takes three quarters of the variance
    # (X*W + b) sigmoid(X*V + c)
    "glu": Gate(2, 4.0, lambda both: F.glu(both, -1)),
    # Oord et al. 2016, as in an LSTM
    "gtu": Gate(2, 4.0, gate_halves(lambda a, b: a.tanh() * b.sigmoid())),
    # Mnih and Hinton 2007: no non-linearity but the product
    "bilinear": Gate(2, 1.0, gate_halves(torch.mul)),
    "relu": Gate(1, 2.0, F.relu),  # half of the variance: He et al. 2015
    "tanh": Gate(1, 1.0, torch.tanh),  # near 0 it is the identity
    "linear": Gate(1, 1.0, lambda x: x),
}


class GatedConvolution(nn.Module):
    """A causal convolution with zeros on the left, (B, T, C) -> (B, T, O); with a kernel of 1 a
    linear map.

    With weight normalisation (Salimans and Kingma 2016) the filter of each output is gain *
    direction / |direction|; without, `direction` is the filter. Weights start from N(0,
    sqrt(variance / (k C))), the biases from 0, the gains so that the filters are the directions.
    """

    def __init__(
        self, channels: int, outputs: int, kernel: int, variance: float, normalised: bool = True
    ):
        super().__init__()
        std = math.sqrt(variance / (kernel * channels))
        self.direction = nn.Parameter(torch.empty(kernel, channels, outputs).normal_(std=std))
        norms = self.direction.detach().flatten(0, 1).norm(dim=0)
        self.gain = nn.Parameter(norms) if normalised else None
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.folded: tuple | None = None

    @property
    def kernel(self) -> int:
        """Return the number of positions that an output sees."""
        return len(self.direction)

    def forward(self, x: Tensor) -> Tensor:
        return causal_convolution(x, self.weight(product_dtype(x)), self.bias)

    def last(self, seen: Tensor) -> Tensor:
        """Return the output (N, O) of windows (N, k * C), the oldest input first."""
        kind = product_dtype(seen)
        return torch.addmm(self.bias.to(kind), seen.to(kind), self.weight(kind).flatten(0, 1))

    def weight(self, kind: torch.dtype) -> Tensor:
        """Return the filter (k, C, O); in evaluation without gradients it is kept as made, in
        `kind`, until a parameter changes.

        PyTorch numbers the changes of a tensor, but for those of fused optimisers: where there is a
        gradient for one, nothing is kept.
        """
        learning = any(parameter.grad is not None for parameter in self.parameters())
        if self.training or torch.is_grad_enabled() or learning:
            return self.normal()
        key = (kind, *map(identify_tensor, (self.direction, self.gain)))
        if self.folded is None or self.folded[0] != key:
            self.folded = key, self.normal().to(kind)
        return self.folded[1]

    def normal(self) -> Tensor:
        """Return the filter (k, C, O) in its own precision."""
        if self.gain is None:
            return self.direction
        # torch's own weight norm calls it; thrice a formula's speed
        return torch._weight_norm(self.direction, self.gain.view(1, 1, -1), 2)

    def train(self, mode: bool = True) -> "GatedConvolution":
        self.folded = None
        return super().train(mode)

    def _apply(self, *arguments, **options) -> "GatedConvolution":  # what .to() and its like call
        self.folded = None
        return super()._apply(*arguments, **options)

    def __getstate__(self) -> dict:
        return {**self.__dict__, "folded": None}  # a copy makes its own


def identify_tensor(tensor: Tensor | None) -> tuple:
    """Return a key that differs once a parameter has been replaced or changed in place; changes by
    `.data` after eval() do not show.
    """
    if tensor is None:
        return ()
    return tensor.data_ptr(), tensor.device, None if tensor.is_inference() else tensor._version
