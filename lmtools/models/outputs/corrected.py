"""Output layers whose raw output z is no log-posterior, and log p(c|x) out of it."""

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lmtools.models.outputs import logits
from lmtools.models.outputs.base import OutputLayer

# log p of an id that is never predicted; finite, so that a block of nothing else has a maximum
NEVER = -1e9
ALL = slice(None)


class Corrected(OutputLayer):
    """log p(c|x) = link(z + before(c)) + after(c) up to normalisation, with z = h W^T + b; `weight`
    (V, D) may be the embedding.

    A subclass defines `link`, `before` and `after`. Where `link` is None the correction is
    `posterior_bias`, a bias in place of `bias`: softmax(h W^T + posterior_bias()) is the posterior,
    and whatever scores with a weight and a bias scores it as it is.
    """

    link = None  # an elementwise function, increasing

    @property
    def linear(self) -> bool:
        return self.link is None

    def __init__(self, weight: nn.Parameter):
        super().__init__()
        self.weight = weight
        self.bias = nn.Parameter(torch.zeros(weight.shape[0], dtype=weight.dtype))

    def before(self, ids: Tensor | slice = ALL) -> Tensor | float:
        """Return the addition to z of these ids, a tensor or a number."""
        return 0.0

    def after(self, ids: Tensor | slice = ALL) -> Tensor | float:
        """Return the addition to the linked output of these ids, float32 or a number."""
        return 0.0

    def bias_to_log(self, bias: Tensor) -> Tensor:
        """Return log p (V,) up to normalisation that biases stand for, the noise apart."""
        return bias

    def bias_from_log(self, log_p: Tensor) -> Tensor:
        """Return the biases that stand for `log_p` (V,); see `bias_to_log`."""
        return log_p

    def posterior_bias(self, ids: Tensor | slice = ALL) -> Tensor:
        """Return the bias b(c) + before(c) of these ids, float32."""
        return (self.bias[ids] + self.before(ids)).float().clamp(min=NEVER)

    @torch.no_grad()
    def unnormalised(self, states, targets):
        result = torch.empty(len(targets), device=states.device)
        for begin in range(0, len(targets), 1 << 14):
            chunk = slice(begin, begin + (1 << 14))
            ids = targets[chunk]
            value = self.apply_link(self.products(states[chunk], ids) + self.posterior_bias(ids))
            result[chunk] = value + self.after(ids)
        return result

    def products(self, states: Tensor, ids: Tensor) -> Tensor:
        """Compute h . W[id] with float32 accumulation, (N,)."""
        if self.packed is not None:
            return self.packed.dot(states, ids)
        return (states.float() * self.weight[ids].to(states.dtype).float()).sum(-1)

    @torch.no_grad()
    def log_normaliser(self, states):
        weight, bias = self.matrix(states.dtype), self.posterior_bias()
        rows, columns = logits.tile(len(weight), states.device)
        parts = [
            self.block_normaliser(chunk, weight, bias, columns) for chunk in states.split(rows)
        ]
        return torch.cat(parts) if parts else torch.empty(0, device=states.device)

    def block_normaliser(self, states, weight, bias: Tensor, columns: int) -> Tensor:
        """Return the log-normaliser of a few states, `columns` of the vocabulary at a time."""
        if self.link is None:
            return logits.log_normaliser(states, weight, bias, columns)
        parts = []
        for begin in range(0, len(weight), columns):
            block = slice(begin, begin + columns)
            value = self.apply_link((states @ weight[block].T).float() + bias[block])
            parts.append((value + self.after(block)).logsumexp(-1))
        return torch.stack(parts).logsumexp(0)

    def traced_log_prob(self, states, targets):
        rows = logits.whole_rows(len(self.weight), states.device)
        chunks = zip(states.split(rows), targets.split(rows), strict=True)
        return torch.cat([checkpoint(self.pick, *chunk, use_reentrant=False) for chunk in chunks])

    def pick(self, states: Tensor, targets: Tensor) -> Tensor:
        """Return log p of targets (N,); their logits are made again for gradients."""
        return self.log_distribution(states).gather(1, targets[:, None])[:, 0]

    @torch.no_grad()
    def distribution(self, states):
        return self.log_distribution(states)

    def log_distribution(self, states: Tensor) -> Tensor:
        """Return `distribution` with gradients."""
        shifted = logits.all_logits(states, self.matrix(states.dtype), self.posterior_bias())
        return (self.apply_link(shifted) + self.after()).log_softmax(-1)

    def apply_link(self, shifted: Tensor) -> Tensor:
        return shifted if self.link is None else self.link(shifted)
