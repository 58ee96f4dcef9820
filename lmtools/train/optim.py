"""Optimisers and the learning rate as a function of the step.

Sampled criteria have sparse gradients: a second optimiser updates the rows in use, without weight
decay. Every read of an embedding goes through nn.Embedding therefore.
"""

import itertools
from collections.abc import Iterable, Mapping

import torch
from torch import nn

from lmtools.base.config import check_choices
from lmtools.base.errors import UserError
from lmtools.models.lm import LanguageModel
from lmtools.models.settings import Optim

# the default, stated so that torch's Adagrad does not warn of it
torch.sparse.check_sparse_tensor_invariants.disable()


class Decoupled:
    """Weight decay p <- (1 - lr decay) p before the update."""

    def __init__(self, groups: list[dict], **options):
        groups = [group if isinstance(group, dict) else {"params": [group]} for group in groups]
        groups = [{"params": g["params"], "decay": g.get("weight_decay", 0.0)} for g in groups]
        super().__init__(groups, **options)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and group.get("decay"):
                    parameter.mul_(1 - group["lr"] * group["decay"])
        return super().step(closure)


class Nag(Decoupled, torch.optim.SGD):
    """Nesterov's gradient (Sutskever et al. 2013): v <- mu v + g, p <- p - lr (g + mu v)."""


class Adagrad(Decoupled, torch.optim.Adagrad):
    """Adagrad (Duchi et al. 2011): a <- a + g^2, p <- p - lr g / sqrt(a), a from 1 as in bilm."""


def make_adagrad(groups, optim: Optim) -> Adagrad:
    return Adagrad(groups, lr=optim.lr, initial_accumulator_value=1.0, eps=0.0)


OPTIMISERS = {
    "adam": lambda groups, optim: torch.optim.AdamW(
        groups, lr=optim.lr, betas=optim.betas, eps=optim.eps, fused=True
    ),
    "sgd": lambda groups, optim: torch.optim.SGD(groups, lr=optim.lr, fused=True),
    # not fused: torch's kernel fails where a parameter gets its first gradient after others
    "nag": lambda groups, optim: Nag(
        groups, lr=optim.lr, momentum=optim.momentum, nesterov=optim.momentum > 0, foreach=True
    ),
    "adagrad": make_adagrad,
}
# of matrices with sparse gradients: Adam's moments, too, change only in the rows in use
SPARSE_OPTIMISERS = {
    "adam": lambda groups, optim: torch.optim.SparseAdam(
        groups, lr=optim.lr, betas=optim.betas, eps=optim.eps
    ),
    "sgd": lambda groups, optim: torch.optim.SGD(groups, lr=optim.lr),
    "adagrad": make_adagrad,
}
# the share of the learning rate at `step` of `total`, counted from 0, behind the warm-up
DECAYS = {
    "linear": lambda step, warmup, total: max(0.0, 1.0 - (step - warmup) / max(1, total - warmup)),
    # Vaswani et al. 2017, Eq. 3: the rate times the root of warmup / n at step n, counted from 1
    "inverse-root": lambda step, warmup, total: (max(1, warmup) / (step + 1)) ** 0.5,
    "none": lambda step, warmup, total: 1.0,
    "plateau": lambda step, warmup, total: 1.0,
}


class Optimisers:
    """Optimisers of parameters numbered in a row, saved as one."""

    def __init__(self, *parts: torch.optim.Optimizer):
        self.parts = parts
        sizes = [sum(len(group["params"]) for group in part.param_groups) for part in parts]
        self.first = [0, *itertools.accumulate(sizes)]

    @property
    def param_groups(self) -> list[dict]:
        return [group for part in self.parts for group in part.param_groups]

    def step(self) -> None:
        for part in self.parts:
            part.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        for part in self.parts:
            part.zero_grad(set_to_none=set_to_none)

    def states(self) -> dict[int, Mapping[str, torch.Tensor]]:
        """Return the state of each parameter by its number."""
        states: dict[int, Mapping] = {}
        for part, first in zip(self.parts, self.first, strict=False):
            states |= {first + i: state for i, state in part.state_dict()["state"].items()}
        return states

    def resume(self, states: Mapping[int, Mapping[str, torch.Tensor]]) -> None:
        for part, first, end in zip(self.parts, self.first, self.first[1:], strict=False):
            numbers = [number for number in states if first <= number < end]
            saved = {number - first: dict(states[number]) for number in numbers}
            if isinstance(part, torch.optim.SparseAdam):
                for state in saved.values():
                    # it counts in a number, not a tensor, and computes with another precision then
                    state["step"] = int(state["step"])
            part.load_state_dict(part.state_dict() | {"state": saved})


def build_optimiser(lm: LanguageModel, optim: Optim) -> Optimisers:
    """Build the optimisers of all that learns; weight decay spares vectors and sparse matrices."""
    check_choices(optim, "optim.", name=OPTIMISERS, decay=DECAYS)
    sparse = [p for p in lm.sparse_parameters() if p.requires_grad]
    if sparse and optim.name not in SPARSE_OPTIMISERS:
        raise UserError(
            f"optim.sparse: {optim.name} moves every row at every step; give optim.sparse=false, or"
            " another optim.name"
        )
    others = set(map(id, sparse))
    parameters = [p for p in lm.parameters() if p.requires_grad and id(p) not in others]
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": optim.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    parts = [OPTIMISERS[optim.name](groups, optim)]
    return Optimisers(*parts, *([SPARSE_OPTIMISERS[optim.name](sparse, optim)] if sparse else []))


def clip_gradients(parameters: Iterable[nn.Parameter], longest: float) -> None:
    """Scale all gradients, dense and sparse, so that their norm together is at most `longest`:
    clipping as in Eq. 4 of Dauphin et al. 2017, where a maximum is printed for the minimum.
    """
    gradients = []
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            # a row that is used twice counts with the sum of its gradients
            parameter.grad = parameter.grad.coalesce()
            gradients.append(parameter.grad.values())
        elif parameter.grad is not None:
            gradients.append(parameter.grad)
    share = longest / (nn.utils.get_total_norm(gradients) + 1e-6)
    torch._foreach_mul_(gradients, share.clamp(max=1.0))


def shrunk_rate(optim: Optim, shrunk: int) -> float:
    """Return the learning rate after `shrunk` reductions by a plateau, warm-up apart."""
    return optim.lr * optim.shrink**shrunk if optim.decay == "plateau" else optim.lr


def learning_rate(optim: Optim, step: int, total: int, shrunk: int = 0) -> float:
    """Return the rate of update `step` (from 0) of `total`, after `shrunk` plateau reductions."""
    rate = shrunk_rate(optim, shrunk)
    if step < optim.warmup:
        return rate * (step + 1) / optim.warmup
    return rate * DECAYS[optim.decay](step, optim.warmup, total)
