"""The full softmax over the vocabulary, trained with cross entropy; logits never exist for more
than a chunk of rows.

Gradients are taken in the forward pass, while a chunk's logits are in cache: faster on a CPU than
autograd.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmtools.config import check_choices
from lmtools.device import product_dtype
from lmtools.outputs.base import OutputLayer
from lmtools.outputs.targets import make_matrix

# logits held at a time: 4 MiB of float32 stay in a CPU's cache between the passes over them
CHUNK = 1 << 20
CHUNK_CUDA = 1 << 27
# of a block in training at the least: each adds a product as large as the weight to its gradient,
# which costs memory traffic
ROWS = 128


@dataclass(frozen=True)
class SoftmaxConfig:
    """From which distribution training starts, as far as the states are 0."""

    # or unigram: the words' frequencies, as sampled criteria start from their noise; much the
    # better over large vocabularies, but the recipes' figures are of uniform
    start: str = "uniform"

    def __post_init__(self):
        check_choices(self, "output.", start=("uniform", "unigram"))


class Softmax(OutputLayer):
    """p(w|h) = softmax(h W^T + b), trained with cross entropy (Eqs. 5 and 6 of Gao et al. 2021);
    `weight` (V, D) may be shared with the input embedding.
    """

    Config = SoftmaxConfig
    linear = True

    @classmethod
    def create(cls, config, shared, width, targets, sparse):
        output = cls(make_matrix(targets.size, width) if shared is None else shared)
        if config.start == "unigram":
            output.bias.data.copy_(targets.log_unigram)
        return output

    def __init__(self, weight: nn.Parameter):
        super().__init__()
        self.weight = weight
        self.bias = nn.Parameter(torch.zeros(weight.shape[0]))

    def training_loss(self, states, targets):
        return LinearCrossEntropy.apply(states, self.weight, self.bias, targets)

    def log_prob(self, states, targets):
        weight, bias = self.matrix(states.dtype), self.bias.float()
        result = torch.empty(len(targets), device=states.device)
        rows, columns = tile(len(weight), states.device)
        for begin in range(0, len(targets), rows):
            some = slice(begin, begin + rows)
            logit = target_logit(states[some], weight, bias, targets[some])
            result[some] = logit - log_normaliser(states[some], weight, bias, columns)
        return result

    def unnormalised(self, states, targets):
        return target_logit(states, self.matrix(states.dtype), self.bias.float(), targets)

    def log_normaliser(self, states):
        weight, bias = self.matrix(states.dtype), self.bias.float()
        rows, columns = tile(len(weight), states.device)
        parts = [log_normaliser(some, weight, bias, columns) for some in states.split(rows)]
        return torch.cat(parts)

    def distribution(self, states):
        return all_logits(states, self.matrix(states.dtype), self.bias.float()).log_softmax(-1)


def tile(vocabulary: int, device: torch.device) -> tuple[int, int]:
    """Rows and vocabulary columns of one block of logits."""
    if device.type == "cuda":
        return max(1, CHUNK_CUDA // vocabulary), vocabulary
    columns = min(vocabulary, 2048)
    return max(1, CHUNK // columns), columns


def whole_rows(vocabulary: int, device: torch.device) -> int:
    """Rows of one block of logits over the whole vocabulary."""
    return max(ROWS, (CHUNK_CUDA if device.type == "cuda" else CHUNK) // vocabulary)


def target_logit(states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """h . W[target] + b[target] with float32 accumulation, (N,)."""
    if not isinstance(weight, Tensor):
        return weight.dot(states, targets) + bias[targets]
    return (states.float() * weight[targets].float()).sum(-1) + bias[targets]


def all_logits(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """h W^T + b in float32, (N, V)."""
    if isinstance(weight, Tensor):
        return F.linear(states, weight).float() + bias
    columns, states = tile(len(weight), states.device)[1], weight.enter(states)
    blocks = zip(weight.split(columns), bias.split(columns), strict=True)
    return torch.cat([block_logits(states, w, b) for w, b in blocks], -1)


def block_logits(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """h W^T + b in float32 of a block of the vocabulary."""
    if not isinstance(weight, Tensor):
        return weight.logits(states, bias)
    if states.dtype == torch.float32:
        return torch.addmm(bias, states, weight.T)
    return (states @ weight.T).float().add_(bias)


def log_normaliser(states: Tensor, weight: Tensor, bias: Tensor, columns: int) -> Tensor:
    """log sum_w exp(h . W[w] + b[w]) in float32, (N,), one block of the vocabulary at a time."""
    states = states if isinstance(weight, Tensor) else weight.enter(states)
    blocks = zip(weight.split(columns), bias.split(columns), strict=True)
    parts = [block_normaliser(states, w, b) for w, b in blocks]
    return parts[0] if len(parts) == 1 else torch.stack(parts).logsumexp(0)


def block_normaliser(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return `log_normaliser` of a block of the vocabulary."""
    logits = block_logits(states, weight, bias)
    if not isinstance(weight, Tensor) and weight.fused:
        column = bias.argmax()  # any id that is not excluded by its bias
        one = logits[:, column].clone()
        return one - torch.log_softmax(logits, -1, out=logits)[:, column]
    top = logits.amax(-1, keepdim=True)
    return logits.sub_(top).exp_().sum(-1).log_() + top[:, 0]


class LinearCrossEntropy(torch.autograd.Function):
    """Summed cross entropy of softmax(h W^T + b); gradients are taken while a chunk's logits are at
    hand and kept instead of them.

    Memory is one chunk of logits and the three gradients, whatever N x V is.
    """

    @staticmethod
    @torch.no_grad()
    def forward(ctx, states, weight, bias, targets):
        kind = product_dtype(states)
        low_weight = weight.to(kind)
        total = torch.zeros((), dtype=torch.float64, device=states.device)
        grad_states = torch.empty_like(states)
        grad_weight = torch.zeros_like(weight)
        grad_bias = torch.zeros_like(bias)
        rows = whole_rows(len(weight), states.device)
        for begin in range(0, len(targets), rows):
            some, gold = states[begin : begin + rows].to(kind), targets[begin : begin + rows, None]
            logits = (some @ low_weight.T).float().add_(bias)  # (rows, V)
            logits -= logits.amax(-1, keepdim=True)
            picked = logits.gather(1, gold)
            normaliser = logits.exp_().sum(-1, keepdim=True)
            total += (normaliser.log() - picked).sum(dtype=torch.float64)
            # softmax - one-hot
            residual = logits.div_(normaliser).scatter_add_(1, gold, -torch.ones_like(picked))
            grad_bias += residual.sum(0)
            residual = residual.to(kind)
            grad_states[begin : begin + rows] = residual @ low_weight
            grad_weight += residual.T @ some
        ctx.save_for_backward(grad_states, grad_weight, grad_bias)
        return total.float()

    @staticmethod
    def backward(ctx, scale):
        return *(scale * gradient for gradient in ctx.saved_tensors), None
