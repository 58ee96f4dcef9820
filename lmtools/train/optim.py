"""Optimisers and the learning rate as a function of the step."""

import torch
from torch import nn

from lmtools.errors import UserError
from lmtools.settings import Optim

OPTIMISERS = {
    "adam": lambda groups, optim: torch.optim.AdamW(groups, lr=optim.lr, betas=optim.betas, eps=optim.eps, fused=True),
    "sgd": lambda groups, optim: torch.optim.SGD(groups, lr=optim.lr, fused=True),
}
DECAYS = {"linear": lambda progress: max(0.0, 1.0 - progress), "none": lambda progress: 1.0}


def build_optimiser(module: nn.Module, optim: Optim) -> torch.optim.Optimizer:
    """The optimiser over all parameters; weight decay is decoupled and spares vectors (biases, LayerNorm)."""
    if optim.name not in OPTIMISERS:
        raise UserError(f"optim.name: {optim.name!r} is unknown; known: {', '.join(OPTIMISERS)}")
    parameters = [p for p in module.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": optim.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return OPTIMISERS[optim.name](groups, optim)


def learning_rate(optim: Optim, step: int, total: int) -> float:
    """The learning rate of the update from `step` (counted from 0) to `step` + 1 of `total`."""
    if optim.decay not in DECAYS:
        raise UserError(f"optim.decay: {optim.decay!r} is unknown; known: {', '.join(DECAYS)}")
    if step < optim.warmup:
        return optim.lr * (step + 1) / optim.warmup
    return optim.lr * DECAYS[optim.decay]((step - optim.warmup) / max(1, total - optim.warmup))
