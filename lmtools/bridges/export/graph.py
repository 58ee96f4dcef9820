"""A language model as one function of padded token ids, which a graph can be made of."""

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmtools.models.convolution import GatedConvolution
from lmtools.models.lm import LanguageModel
from lmtools.text.subword import BOS, EOS, MASK, PAD


class SentenceScores(nn.Module):
    """Sentences (N, T) right-padded with anything and their lengths (N,) -> the negative
    log-probabilities (N,) of the whole sentences in nats, and the log-probabilities (N, T + 1) of
    their tokens and ends, 0 after them.

    The boundary tokens are added inside, as `lmtools score` adds them: <s> before and, for models
    that read both sides, </s> after the last token. A masked model reads T + 1 copies of each
    sentence, each with one token masked (pseudo-log-likelihood).
    """

    def __init__(self, lm: LanguageModel):
        super().__init__()
        lm = copy.deepcopy(lm).eval()
        replace_convolutions(lm)
        self.trunk, self.output = lm.trunk, lm.output
        self.masks, self.both_sides = lm.trunk.masks, lm.objective.boundary == 2

    def forward(self, x: Tensor, x_lens: Tensor) -> tuple[Tensor, Tensor]:
        first = torch.full_like(x[:, :1], BOS)
        place = torch.arange(x.shape[1] + 1, device=x.device)
        end = x_lens[:, None]
        # (N, T + 1): tokens, </s>, padding
        targets = F.pad(x, (0, 1))
        targets = torch.where(place < end, targets, torch.where(place == end, EOS, PAD))
        if self.masks:
            states = self.masked_states(torch.cat([first, targets], 1), x_lens + 2)
        elif self.both_sides:
            states = self.trunk.hidden(torch.cat([first, targets], 1), x_lens + 2)[:, 1:]
        else:
            states = self.trunk.hidden(torch.cat([first, targets[:, :-1]], 1), x_lens + 1)
        every = self.output.distribution(self.trunk.head(states.flatten(0, 1)))
        log_prob = every.gather(1, targets.flatten()[:, None]).view_as(targets)
        log_prob = torch.where(place <= end, log_prob, 0.0)
        return -log_prob.sum(1), log_prob

    def masked_states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the state of each token but the first in the copy that masks it: (N, L) -> (N, L -
        1, D).
        """
        place = torch.arange(tokens.shape[1], device=tokens.device)
        itself = place[1:, None] == place  # (L - 1, L)
        copies = torch.where(itself, MASK, tokens[:, None])  # (N, L - 1, L)
        every = lengths[:, None].expand(-1, tokens.shape[1] - 1).flatten()
        states = self.trunk.hidden(copies.flatten(0, 1), every).unflatten(0, copies.shape[:2])
        return (states * itself[:, :, None]).sum(2)


class Convolution(nn.Module):
    """A causal convolution as the one operation that every engine has, its weight normalisation
    folded.
    """

    def __init__(self, layer: GatedConvolution):
        super().__init__()
        self.kernel = layer.kernel
        self.weight = nn.Parameter(layer.normal().detach().permute(2, 1, 0).contiguous())
        self.bias = layer.bias

    def forward(self, x: Tensor) -> Tensor:
        seen = F.pad(x.transpose(1, 2), (self.kernel - 1, 0))
        return F.conv1d(seen, self.weight, self.bias).transpose(1, 2)


def replace_convolutions(module: nn.Module) -> None:
    """Put a Convolution in the place of each GatedConvolution."""
    for name, child in module.named_children():
        if isinstance(child, GatedConvolution):
            setattr(module, name, Convolution(child))
        else:
            replace_convolutions(child)
