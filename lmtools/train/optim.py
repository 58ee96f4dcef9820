"""Optimisers and the learning rate as a function of the step."""

import itertools
from collections.abc import Iterable, Mapping

import torch
from torch import nn

from lmtools.errors import UserError
from lmtools.lm import LanguageModel
from lmtools.settings import Optim

OPTIMISERS = {
    "adam": lambda groups, optim: torch.optim.AdamW(groups, lr=optim.lr, betas=optim.betas, eps=optim.eps, fused=True),
    "sgd": lambda groups, optim: torch.optim.SGD(groups, lr=optim.lr, fused=True),
}
SPARSE_OPTIMISERS = {  # of matrices with sparse gradients: Adam's moments, too, change only in the rows in use
    "adam": lambda groups, optim: torch.optim.SparseAdam(groups, lr=optim.lr, betas=optim.betas, eps=optim.eps),
    "sgd": lambda groups, optim: torch.optim.SGD(groups, lr=optim.lr),
}
DECAYS = {"linear": lambda progress: max(0.0, 1.0 - progress), "none": lambda progress: 1.0}


class Joint:
    """Several optimisers, each of its own parameters, used and saved as one; their parameters are numbered in a row."""

    def __init__(self, parts: list[torch.optim.Optimizer]):
        self.parts = parts
        sizes = [sum(len(group["params"]) for group in part.param_groups) for part in parts]
        self.first = [0, *itertools.accumulate(sizes)]

    @property
    def param_groups(self) -> list[dict]:
        """The groups of all."""
        return [group for part in self.parts for group in part.param_groups]

    def step(self) -> None:
        """One update."""
        for part in self.parts:
            part.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none=set_to_none)

    def state_dict(self) -> dict:
        """The state of each parameter by its number, and the groups."""
        state = {first + i: s for part, first in zip(self.parts, self.first, strict=False) for i, s in part.state_dict()["state"].items()}
        return {"state": state, "param_groups": self.param_groups}

    def load_state_dict(self, saved: Mapping) -> None:
        """Put back what `state_dict` gave."""
        for part, first, end in zip(self.parts, self.first, self.first[1:], strict=False):
            own = {number - first: dict(s) for number, s in saved["state"].items() if first <= number < end}
            for state in own.values():
                if isinstance(part, torch.optim.SparseAdam):
                    state["step"] = int(state["step"])  # it counts in a number, not a tensor, and computes with another precision then
            part.load_state_dict({"state": own, "param_groups": part.state_dict()["param_groups"]})


def build_optimiser(lm: LanguageModel, optim: Optim) -> torch.optim.Optimizer | Joint:
    """The optimiser over all parameters; weight decay is decoupled and spares vectors (biases, LayerNorm) and sparse matrices."""
    if optim.name not in OPTIMISERS:
        raise UserError(f"optim.name: {optim.name!r} is unknown; known: {', '.join(OPTIMISERS)}")
    sparse = lm.sparse_parameters()
    parameters = [p for p in lm.parameters() if p.requires_grad and not any(p is other for other in sparse)]
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": optim.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    dense = OPTIMISERS[optim.name](groups, optim)
    return Joint([dense, SPARSE_OPTIMISERS[optim.name](sparse, optim)]) if sparse else dense


def clip_gradients(parameters: Iterable[nn.Parameter], longest: float) -> None:
    """Scale all gradients, dense and sparse, so that their norm together is at most `longest`."""
    gradients = []
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()  # a row that is used twice counts with the sum of its gradients
            gradients.append(parameter.grad.values())
        elif parameter.grad is not None:
            gradients.append(parameter.grad)
    share = longest / (nn.utils.get_total_norm(gradients) + 1e-6)
    torch._foreach_mul_(gradients, share.clamp(max=1.0))


def learning_rate(optim: Optim, step: int, total: int) -> float:
    """The learning rate of the update from `step` (counted from 0) to `step` + 1 of `total`."""
    if optim.decay not in DECAYS:
        raise UserError(f"optim.decay: {optim.decay!r} is unknown; known: {', '.join(DECAYS)}")
    if step < optim.warmup:
        return optim.lr * (step + 1) / optim.warmup
    return optim.lr * DECAYS[optim.decay]((step - optim.warmup) / max(1, total - optim.warmup))
