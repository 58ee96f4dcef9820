"""Trainings of a part of a model: layers that stay, matrices that only get low-rank updates."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from lmtools.base.errors import UserError
from lmtools.models.lm import LanguageModel
from lmtools.models.settings import Settings

SAVED = "lora."  # before the names in a checkpoint


def choose_parameters(lm: LanguageModel, settings: Settings) -> list[str]:
    """Let what the settings freeze, and with low-rank updates all that they do not train, have no
    gradient; return the names of the matrices that low-rank updates change. UserError where
    nothing is left to train.
    """
    freeze, lora, trunk = settings.freeze, settings.lora, lm.trunk
    if freeze.layers > trunk.depth:
        raise UserError(
            f"freeze.layers: {freeze.layers} is more than the {trunk.depth} layers of the model;"
            f" give at most {trunk.depth}"
        )
    below = find_embedding(lm)
    updated: list[str] = []
    if lora.rank:
        kept = {id(p) for part in trunk.stack[: freeze.layers] for p in part.parameters()}
        kept |= {id(p) for part in (below, lm.output) for p in part.parameters()}
        matrices = {n: p for n, p in lm.named_parameters() if p.dim() > 1 and id(p) not in kept}
        updated = list(matrices)
        whole = [*below.parameters(), *lm.output.parameters()] if lora.embeddings else []
        lm.requires_grad_(False)
        for parameter in (*matrices.values(), *whole):
            parameter.requires_grad_(True)
    stays = [below] * freeze.embedding + [lm.output] * freeze.output
    for part in (*stays, *trunk.stack[: freeze.layers]):
        part.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in lm.parameters()):
        raise UserError("freeze: nothing is left to train; freeze less")
    return updated


def find_embedding(lm: LanguageModel) -> nn.Module:
    """Find the part of the trunk below its layers, which holds the table of embeddings."""
    table = lm.trunk.lookup
    return next(part for part in lm.trunk.children() if table in part.modules())


class LowRank:
    """Matrices W that are W0 + alpha / rank * B A, with W0 as they are now, B from 0, A drawn.

    The model holds W at any time: it is an ordinary model. The gradients of A and B are made of
    that of W, by the chain rule.
    """

    def __init__(self, lm: LanguageModel, names: list[str], settings: Settings):
        lora, parameters = settings.lora, dict(lm.named_parameters())
        self.scale = lora.alpha / lora.rank if lora.rank else 0.0
        self.matrices = {name: parameters[name] for name in names}
        self.start = {name: matrix.detach().clone() for name, matrix in self.matrices.items()}
        self.up: dict[str, nn.Parameter] = {}
        self.down: dict[str, nn.Parameter] = {}
        generator = torch.Generator().manual_seed(settings.seed)
        for name, matrix in self.matrices.items():
            rows, columns = matrix.flatten(0, -2).shape
            drawn = torch.randn(lora.rank, columns, generator=generator) * columns**-0.5
            self.down[name] = nn.Parameter(drawn.to(matrix.device))
            self.up[name] = nn.Parameter(torch.zeros(rows, lora.rank, device=matrix.device))

    def parameters(self) -> list[nn.Parameter]:
        """Return A and B of each matrix."""
        return [p for name in self.matrices for p in (self.down[name], self.up[name])]

    @torch.no_grad()
    def take_gradients(self) -> None:
        """Give A and B the gradients that the matrices have, which lose them."""
        for name, matrix in self.matrices.items():
            if matrix.grad is not None:
                slope = matrix.grad.flatten(0, -2) * self.scale
                self.up[name].grad = slope @ self.down[name].T
                self.down[name].grad = self.up[name].T @ slope
                matrix.grad = None

    @torch.no_grad()
    def merge(self) -> None:
        """Set the matrices to W0 + alpha / rank * B A."""
        for name, matrix in self.matrices.items():
            update = (self.up[name] @ self.down[name]).view_as(matrix)
            torch.add(self.start[name], update, alpha=self.scale, out=matrix)

    def state(self) -> dict[str, Tensor]:
        """Return A and B for a checkpoint."""
        return {
            f"{SAVED}{name}.{part}": factor[name].detach()
            for name in self.matrices
            for part, factor in (("down", self.down), ("up", self.up))
        }

    @torch.no_grad()
    def resume(self, saved: Mapping[str, Tensor]) -> None:
        """Go on from a saved state; the matrices are those of the model's own."""
        for name in self.matrices:
            self.down[name].copy_(saved[f"{SAVED}{name}.down"])
            self.up[name].copy_(saved[f"{SAVED}{name}.up"])
