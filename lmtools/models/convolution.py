"""Causal convolution over time as matrix products, by fewer multiplications than the definition
has.

Over even and odd times apart, a filter h of even lags h0 and odd lags h1 needs three half-length
filters at half the rate instead of four (fast FIR algorithm; Mou and Duhamel 1991, Short-length FIR
filters and their use in fast nonrecursive filtering), here in the form in which no output is a
difference of things that lie after it:

    p = (h0 + h1) * even,   q = h1 * (odd one step ago - even),   r = h0 * (odd - even);   even
    output = p + q,  odd output = p + r

and each of the three again so. Two such halvings of a kernel of 4 leave 9/16 of the
multiplications, and no result depends on a later input, bit for bit. A filter that is halved no
further is one product with the windows of its input (im2col).

Of Dauphin et al. 2017 are GLU (Eq. 1), whose gradient (Eq. 3) has a part that no gate scales down,
bilinear, linear and ReLU units, and GTU for comparison (Eq. 2: both factors scale its gradient).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmtools.models.device import product_dtype

MOST = 2  # halvings: each costs a little precision, and kernels are short
# multiply-adds of a matrix product that take as long on a CPU as a halving's additions for an
# output
ADDITIONS = 40
FILTERS = 48  # and as long as making and reading its filters takes for a weight


def causal_convolution(
    x: Tensor, weight: Tensor, bias: Tensor, halvings: int | None = None
) -> Tensor:
    """Compute y[t] = bias + sum over j of x[t - (k - 1) + j] weight[j], with zeros before the
    beginning: (B, T, C), (k, C, O), (O,) -> (B, T, O).

    The precision is autocast's where it is on. `halvings` None: as many as are fastest.
    """
    kind = product_dtype(x)
    if halvings is None:
        halvings = best_halvings(weight.shape, x.shape, kind, x.device)
    if not torch.is_grad_enabled():
        return CausalConvolution.compute(x.to(kind), weight.to(kind), bias.to(kind), halvings)
    return CausalConvolution.apply(x, weight, bias, kind, halvings)


def best_halvings(
    weight: Sequence[int], x: Sequence[int], kind: torch.dtype, device: torch.device
) -> int:
    """Return the fastest number of halvings; 0 on a GPU and in low precision (rounding)."""
    if device.type != "cpu" or kind not in (torch.float32, torch.float64):
        return 0
    (batch, length, channels), kernel = x, weight[0]
    costs = []  # in multiply-adds for one of the outputs' channels
    for halvings in range(MOST + 1):
        rows = batch * padded_length(length, halvings)
        work = rows * (count_multiplications(kernel, halvings) * channels + ADDITIONS * halvings)
        costs.append(work + FILTERS * halvings * kernel * channels)
    return costs.index(min(costs))


def count_multiplications(kernel: int, halvings: int) -> float:
    """Count the products with the state of one time that one output takes."""
    if kernel == 1 or halvings == 0:
        return kernel
    return (
        2 * count_multiplications(kernel - kernel // 2, halvings - 1)
        + count_multiplications(kernel // 2, halvings - 1)
    ) / 2


def padded_length(length: int, halvings: int) -> int:
    """Return the length up to which time is filled with zeros, so that it can be halved."""
    return -(-length >> halvings) << halvings


class CausalConvolution(torch.autograd.Function):
    """The convolution and its gradients; windows are made again rather than kept."""

    @staticmethod
    def forward(ctx, x, weight, bias, kind, halvings):
        low_x, low_weight = x.to(kind), weight.to(kind)
        ctx.save_for_backward(low_x, low_weight)
        ctx.halvings, ctx.kinds = halvings, (x.dtype, weight.dtype, bias.dtype)
        return CausalConvolution.compute(low_x, low_weight, bias.to(kind), halvings)

    @staticmethod
    def compute(x, weight, bias, halvings):
        length = x.shape[1]
        return convolve(pad_time(x, halvings), weight, bias, halvings)[:, :length]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        (x, weight), length = ctx.saved_tensors, grad.shape[1]
        kinds = ctx.kinds
        grad_x, grad_weight = convolve_backward(
            pad_time(x, ctx.halvings),
            weight,
            pad_time(grad.to(x.dtype), ctx.halvings),
            ctx.halvings,
        )
        grad_bias = grad.sum((0, 1), dtype=kinds[2])
        return grad_x[:, :length].to(kinds[0]), grad_weight.to(kinds[1]), grad_bias, None, None


def pad_time(x: Tensor, halvings: int) -> Tensor:
    """Return `x` with zeros after its end where its length cannot be halved."""
    lacking = padded_length(x.shape[1], halvings) - x.shape[1]
    return F.pad(x, (0, 0, 0, lacking)) if lacking else x


def convolve(x: Tensor, weight: Tensor, bias: Tensor | None, halvings: int) -> Tensor:
    """Return the convolution where the length (B, T, C) can be halved so often; (B, T, O)."""
    if halvings == 0 or len(weight) == 1:
        seen = stack_windows(x, len(weight))
        matrix = weight.reshape(-1, weight.shape[-1])
        return (seen @ matrix if bias is None else torch.addmm(bias, seen, matrix)).unflatten(
            0, x.shape[:2]
        )
    both, odd, even = branch_filters(weight)
    p = convolve(x[:, ::2], both, bias, halvings - 1)  # is in every output, and the bias with it
    q, r = (
        convolve(y, h, None, halvings - 1)
        for y, h in zip(branch_inputs(x), (odd, even), strict=True)
    )
    result = p.new_empty(*x.shape[:2], weight.shape[-1])
    torch.add(p, q, out=result[:, ::2])
    torch.add(p, r, out=result[:, 1::2])
    return result


def convolve_backward(
    x: Tensor, weight: Tensor, grad: Tensor, halvings: int
) -> tuple[Tensor, Tensor]:
    """Return the gradients of `convolve` by `x` and `weight`, from that by its result."""
    if halvings == 0 or len(weight) == 1:
        return window_gradients(x, weight, grad)
    both, odd, even = branch_filters(weight)
    after_q, after_r = branch_inputs(x)
    grad_even, grad_odd = grad[:, ::2], grad[:, 1::2]
    by_p, by_both = convolve_backward(x[:, ::2], both, grad_even + grad_odd, halvings - 1)
    by_q, by_odd = convolve_backward(after_q, odd, grad_even, halvings - 1)
    by_r, by_even = convolve_backward(after_r, even, grad_odd, halvings - 1)
    grad_x, grad_weight = x.new_empty(x.shape), torch.empty_like(weight)
    torch.sub(by_p, by_q, out=grad_x[:, ::2]).sub_(by_r)
    grad_x[:, 1::2] = by_r
    grad_x[:, 1:-1:2] += by_q[:, 1:]
    of_even, of_odd = split_phases(grad_weight)
    torch.add(by_even, by_both, out=of_even)
    torch.add(by_odd, by_both[-len(by_odd) :], out=of_odd)
    return grad_x, grad_weight


def split_phases(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the filter's even lags, (k + 1) // 2, and odd lags, k // 2; lag 0 is its last row."""
    kernel = len(weight)
    return weight[(kernel - 1) % 2 :: 2], weight[kernel % 2 :: 2]


def branch_filters(weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    even, odd = split_phases(weight)
    both = even.clone()
    both[-len(odd) :] += odd
    return both, odd, even


def branch_inputs(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the inputs of q and r, (B, T / 2, C) each."""
    even, odd = x[:, ::2], x[:, 1::2]
    before = even.neg()
    before[:, 1:] += odd[:, :-1]
    return before, odd - even


def stack_windows(x: Tensor, kernel: int) -> Tensor:
    """Return the inputs that each output sees, the oldest first: (B, T, C) -> (B * T, k * C)."""
    batch, length, channels = x.shape
    if kernel == 1:
        return x.reshape(-1, channels)
    longer = x.new_zeros(batch, kernel - 1 + length, channels)
    longer[:, kernel - 1 :] = x
    return longer.as_strided(
        (batch, length, kernel * channels), (longer.stride(0), channels, 1)
    ).reshape(-1, kernel * channels)


def window_gradients(x: Tensor, weight: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Return a windowed product's gradients by input (B, T, C), summed, and by the filter."""
    kernel, length = len(weight), x.shape[1]
    rows = grad.reshape(-1, grad.shape[-1])
    grad_weight = (stack_windows(x, kernel).T @ rows).view(weight.shape)
    apart = (rows @ weight.reshape(-1, weight.shape[-1]).T).view(len(x), length, kernel, -1)
    if kernel == 1:
        return apart[:, :, 0], grad_weight
    grad_x = apart[:, :, -1].float() if x.dtype == torch.bfloat16 else apart[:, :, -1].clone()
    for lag in range(1, min(kernel, length)):
        grad_x[:, :-lag] += apart[:, lag:, -1 - lag]
    return grad_x, grad_weight


@dataclass(frozen=True)
class Gate:
    """Gate of a layer: its output as a function of X*W + b and, where there are two branches, X*V +
    c; `gain` is Kaiming's, for outputs of the variance that a linear layer of variance 1 has.
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
        return len(self.direction)

    def forward(self, x: Tensor) -> Tensor:
        return causal_convolution(x, self.weight(product_dtype(x)), self.bias)

    def last(self, seen: Tensor) -> Tensor:
        """Return the output (N, O) of windows (N, k * C), the oldest input first."""
        kind = product_dtype(seen)
        return torch.addmm(self.bias.to(kind), seen.to(kind), self.weight(kind).flatten(0, 1))

    def weight(self, kind: torch.dtype) -> Tensor:
        """Return the filter (k, C, O), kept in evaluation until a parameter changes, of which
        PyTorch tells but for fused optimisers: with gradients nothing is kept.
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
    """Return a key that changes with a parameter, but not by changes of `.data` after eval()."""
    if tensor is None:
        return ()
    return tensor.data_ptr(), tensor.device, None if tensor.is_inference() else tensor._version
