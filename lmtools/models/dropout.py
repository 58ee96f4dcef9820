"""Dropout whose random numbers do not dominate a small model's training step on a CPU."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# a byte decides over an element on the CPU, so that the rate there is the nearest multiple of 1/256
LEVELS = 256


class Dropout(nn.Module):
    """Layer that zeroes elements with probability `rate` in training and scales the rest up so that
    the expectation stays.
    """

    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.rate)
        dropped = round(self.rate * LEVELS)
        # eight decisions a draw
        words = torch.empty(-(-x.numel() // 8), dtype=torch.int64).random_(-(2**63), None)
        keep = (words.view(torch.uint8)[: x.numel()] >= dropped).view_as(x)
        return x * (keep.to(x.dtype) * (LEVELS / (LEVELS - dropped)))
