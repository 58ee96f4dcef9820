"""Optimisers and the learning rate as a function of the step.

Sampled criteria have sparse gradients: a second optimiser updates the rows in use, without weight
decay. Every read of an embedding goes through nn.Embedding therefore.
"""

import itertools
import types
from collections.abc import Iterable, Mapping

import torch
from torch import nn

from lmtools.errors import UserError
from lmtools.lm import LanguageModel
from lmtools.settings import Optim
from lmtools.train.partial import LowRank

# as it is by default; said aloud, torch's Adagrad does not warn of it
torch.sparse.check_sparse_tensor_invariants.disable()


class Decoupled:
    """Weight decay of p <- (1 - lr decay) p before the update, for optimisers of torch that would
    add it to the gradient.
    """

    def __init__(self, groups: list[dict], **options):
        groups = [group if isinstance(group, dict) else {"params": [group]} for group in groups]
        decays = [group.get("weight_decay", 0.0) for group in groups]
        own = [
            {"params": group["params"], "decay": decay}
            for group, decay in zip(groups, decays, strict=True)
        ]
        super().__init__(own, **options)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and group.get("decay"):
                    parameter.mul_(1 - group["lr"] * group["decay"])
        return super().step(closure)


class Nag(Decoupled, torch.optim.SGD):
    """Nesterov's accelerated gradient (Sutskever et al. 2013): v <- mu v + g, p <- p - lr (g + mu
    v); v knows of no learning rate.
    """


class Adagrad(Decoupled, torch.optim.Adagrad):
    """Adagrad (Duchi et al. 2011): a <- a + g^2, p <- p - lr g / sqrt(a), a from 1 as in bilm, so
    that nothing is divided by 0.
    """


def make_nag(groups, optim: Optim) -> Nag:
    """NAG; not fused: torch's fused kernel fails where a parameter gets its first gradient after
    others.
    """
    how = {"momentum": optim.momentum, "nesterov": optim.momentum > 0, "foreach": True}
    return Nag(groups, lr=optim.lr, **how)


def make_adagrad(groups, optim: Optim) -> Adagrad:
    """Adagrad, of dense and of sparse gradients."""
    return Adagrad(groups, lr=optim.lr, initial_accumulator_value=1.0, eps=0.0)


OPTIMISERS = {
    "adam": lambda groups, optim: torch.optim.AdamW(
        groups, lr=optim.lr, betas=optim.betas, eps=optim.eps, fused=True
    ),
    "sgd": lambda groups, optim: torch.optim.SGD(groups, lr=optim.lr, fused=True),
    "nag": make_nag,
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
DECAYS = {
    "linear": lambda progress: max(0.0, 1.0 - progress),
    "none": lambda progress: 1.0,
    "plateau": lambda progress: 1.0,
}


class OptimiserGroup:
    """Several optimisers, each of its own parameters, used and saved as one; their parameters are
    numbered in a row.
    """

    def __init__(self, parts: list[torch.optim.Optimizer]):
        self.parts = parts
        sizes = [sum(len(group["params"]) for group in part.param_groups) for part in parts]
        self.first = [0, *itertools.accumulate(sizes)]

    @property
    def param_groups(self) -> list[dict]:
        """The groups of all."""
        return [group for part in self.parts for group in part.param_groups]

    def step(self) -> None:
        """Update the parameters once."""
        for part in self.parts:
            part.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none=set_to_none)

    def state_dict(self) -> dict:
        """Return the state of each parameter by its number, and the groups."""
        state = {
            first + i: s
            for part, first in zip(self.parts, self.first, strict=False)
            for i, s in part.state_dict()["state"].items()
        }
        return {"state": state, "param_groups": self.param_groups}

    def load_state_dict(self, saved: Mapping) -> None:
        """Put back what `state_dict` gave."""
        for part, first, end in zip(self.parts, self.first, self.first[1:], strict=False):
            numbers = [number for number in saved["state"] if first <= number < end]
            own = {number - first: dict(saved["state"][number]) for number in numbers}
            if isinstance(part, torch.optim.SparseAdam):
                for state in own.values():
                    # it counts in a number, not a tensor, and computes with another precision then
                    state["step"] = int(state["step"])
            part.load_state_dict({"state": own, "param_groups": part.state_dict()["param_groups"]})


class OptimiserState:
    """State of a checkpoint besides weights: an optimiser's and, numbered after its parameters, the
    tensors carried from batch to batch.
    """

    def __init__(
        self,
        optimiser: torch.optim.Optimizer | OptimiserGroup,
        carried: Mapping[str, torch.Tensor] = types.MappingProxyType({}),
    ):
        self.optimiser, self.carried = optimiser, carried
        self.number = sum(len(group["params"]) for group in optimiser.param_groups)

    def state_dict(self) -> dict:
        """Return both states as one."""
        whole = self.optimiser.state_dict()
        return {**whole, "state": {**whole["state"], self.number: self.carried}}

    def load_state_dict(self, saved: Mapping) -> None:
        """Put back the optimiser's; the rest is in `carried` then."""
        state = dict(saved["state"])
        self.carried = state.pop(self.number, {})
        self.optimiser.load_state_dict({**saved, "state": state})


def build_optimiser(
    lm: LanguageModel, optim: Optim, low_rank: LowRank | None = None
) -> torch.optim.Optimizer | OptimiserGroup:
    """Build the optimiser over all parameters that learn, with the factors of low-rank updates in
    place of their matrices; weight decay is decoupled and spares vectors (biases, LayerNorm) and
    sparse matrices.
    """
    if optim.name not in OPTIMISERS:
        raise UserError(f"optim.name: {optim.name!r} is unknown; known: {', '.join(OPTIMISERS)}")
    sparse = [p for p in lm.sparse_parameters() if p.requires_grad]
    if sparse and optim.name not in SPARSE_OPTIMISERS:
        raise UserError(
            f"optim.sparse: {optim.name} moves every row at every step; give optim.sparse=false, or"
            " another optim.name"
        )
    others = {id(p) for p in (*sparse, *(low_rank.matrices.values() if low_rank else ()))}
    parameters = [p for p in lm.parameters() if p.requires_grad and id(p) not in others]
    parameters += low_rank.parameters() if low_rank else []
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": optim.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    dense = OPTIMISERS[optim.name](groups, optim)
    return (
        OptimiserGroup([dense, SPARSE_OPTIMISERS[optim.name](sparse, optim)]) if sparse else dense
    )


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
    """Return the learning rate of the update from `step` (counted from 0) to `step` + 1 of `total`,
    after `shrunk` reductions by a plateau.
    """
    if optim.decay not in DECAYS:
        raise UserError(f"optim.decay: {optim.decay!r} is unknown; known: {', '.join(DECAYS)}")
    rate = shrunk_rate(optim, shrunk)
    if step < optim.warmup:
        return rate * (step + 1) / optim.warmup
    return rate * DECAYS[optim.decay]((step - optim.warmup) / max(1, total - optim.warmup))
