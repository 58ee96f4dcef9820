"""Logits of linear output layers, which never exist for more than a block of the vocabulary or a
chunk of rows, and summed losses of them.

Gradients are taken in the forward pass, while a chunk's logits are in cache: faster on a CPU than
autograd.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from lmtools.models.device import product_dtype

# logits held at a time: 4 MiB of float32 stay in a CPU's cache between the passes over them
CHUNK = 1 << 20
CHUNK_CUDA = 1 << 27
# of a block in training at the least: each adds a product as large as the weight to its gradient,
# which costs memory traffic
ROWS = 128


def tile(vocabulary: int, device: torch.device) -> tuple[int, int]:
    """Return the rows and the vocabulary columns of one block of logits."""
    if device.type == "cuda":
        return max(1, CHUNK_CUDA // vocabulary), vocabulary
    columns = min(vocabulary, 2048)
    return max(1, CHUNK // columns), columns


def whole_rows(vocabulary: int, device: torch.device) -> int:
    return max(ROWS, (CHUNK_CUDA if device.type == "cuda" else CHUNK) // vocabulary)


def all_logits(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute h W^T + b in float32, (N, V)."""
    if isinstance(weight, Tensor):
        return F.linear(states, weight).float() + bias
    columns, states = tile(len(weight), states.device)[1], weight.enter(states)
    blocks = zip(weight.split(columns), bias.split(columns), strict=True)
    return torch.cat([block_logits(states, w, b) for w, b in blocks], -1)


def block_logits(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute h W^T + b in float32 of a block of the vocabulary."""
    if not isinstance(weight, Tensor):
        return weight.logits(states, bias)
    if states.dtype == torch.float32:
        return torch.addmm(bias, states, weight.T)
    return (states @ weight.T).float().add_(bias)


def log_normaliser(states: Tensor, weight: Tensor, bias: Tensor, columns: int) -> Tensor:
    """Compute log sum_w exp(h . W[w] + b[w]) in float32, (N,), block by block."""
    states = states if isinstance(weight, Tensor) else weight.enter(states)
    blocks = zip(weight.split(columns), bias.split(columns), strict=True)
    parts = [block_normaliser(states, w, b) for w, b in blocks]
    return parts[0] if len(parts) == 1 else torch.stack(parts).logsumexp(0)


def block_normaliser(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return `log_normaliser` of a block of the vocabulary."""
    logits = block_logits(states, weight, bias)
    if not isinstance(weight, Tensor) and weight.fused:
        column = bias.argmax()  # any id that is not excluded by its bias
        logit = logits[:, column].clone()
        return logit - torch.log_softmax(logits, -1, out=logits)[:, column]
    top = logits.amax(-1, keepdim=True)
    return logits.sub_(top).exp_().sum(-1).log_() + top[:, 0]


def add_product(total: Tensor, a: Tensor, b: Tensor) -> None:
    """Add a b to `total`, with the bits of a product that is added as a whole.

    Over ROWS terms and fewer a kernel sums the product before it adds it, so that none needs to be
    written: the matrix of a large vocabulary, as large as the weight, chunk after chunk.
    """
    if len(b) <= ROWS and a.dtype == total.dtype:
        total.addmm_(a, b)
    else:
        total.add_(a @ b)


class LinearLoss(torch.autograd.Function):
    """Summed loss of z = h W^T + b; memory is one chunk of z and the three gradients, whatever
    N x V is.

    `criterion` takes z (rows, V) of a chunk, which it may overwrite, and the targets (rows, 1); it
    returns the summed loss in float64 and its derivative by z.
    """

    @staticmethod
    @torch.no_grad()
    def forward(ctx, states, weight, bias, targets, criterion):
        kind = product_dtype(states)
        low_weight = weight.to(kind)
        total = torch.zeros((), dtype=torch.float64, device=states.device)
        learnt = ctx.needs_input_grad[1]  # a matrix that stays needs no gradient of its size
        changed = torch.zeros_like(weight) if learnt else None
        gradients = torch.empty_like(states), changed, torch.zeros_like(bias)
        rows = whole_rows(len(weight), states.device)
        for begin in range(0, len(targets), rows):
            chunk, gold = states[begin : begin + rows].to(kind), targets[begin : begin + rows, None]
            loss, slope = criterion((chunk @ low_weight.T).to(bias.dtype).add_(bias), gold)
            total += loss
            gradients[2].add_(slope.sum(0))
            slope = slope.to(kind)
            gradients[0][begin : begin + rows] = slope @ low_weight
            if changed is not None:
                add_product(changed, slope.T, chunk)
        ctx.save_for_backward(*gradients)
        return total.to(bias.dtype)

    @staticmethod
    def backward(ctx, scale):
        saved = ctx.saved_tensors
        return *(None if g is None else scale * g for g in saved), None, None
