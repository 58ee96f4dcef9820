"""LoRA adapters of Hugging Face models (Hu et al. 2022), in the files of the package peft: reading,
checking, merging into a model's weights. Nothing of peft runs: its configuration may name modules.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lmtools.base.errors import UserError
from lmtools.base.files import cannot, sha256

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."  # of the names of peft's tensors
DOWN, UP = ".lora_A.weight", ".lora_B.weight"  # (rank, columns) and (rows, rank)
# what else a configuration may ask for beside updates of rank r, where it is not as here
PLAIN = {
    "bias": ("none",), "use_dora": (False,), "modules_to_save": (), "lora_bias": (False,),
    "trainable_token_indices": (), "target_parameters": (), "layer_replication": (),
    "alora_invocation_tokens": (), "arrow_config": (), "use_qalora": (False,),
}  # fmt: skip
REMEDY = (
    "merge it where you trust it (peft's merge_and_unload), save the model with save_pretrained and"
    " give that directory"
)


class Adapter(NamedTuple):
    """Low-rank updates of a model by the names of its modules."""

    config: Mapping[str, Any]
    updates: Mapping[str, tuple[Tensor, Tensor]]  # A (rank, columns) and B (rows, rank)

    def scale(self, name: str) -> float:
        """Return the factor of B A of a module: alpha / rank, or alpha / the root of the rank."""
        rank = len(self.updates[name][0])
        alpha = self.config.get("lora_alpha", 8)
        for pattern, other in (self.config.get("alpha_pattern") or {}).items():
            alpha = other if f".{name}".endswith(f".{pattern}") else alpha
        return alpha / (math.sqrt(rank) if self.config.get("use_rslora") else rank)


def read_adapter(directory) -> Adapter:
    """Read a directory that peft saved; UserError for what is no plain LoRA."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = Path(directory) / CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        kind = config["peft_type"]
    except OSError as error:
        raise cannot("read", path, error) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UserError(
            f"{path}: not the configuration of an adapter of peft; save it again"
        ) from None
    odd = [name for name, usual in PLAIN.items() if config.get(name) and config[name] not in usual]
    if kind != "LORA" or odd:
        cause = f"has {odd[0]}" if kind == "LORA" else f"is {str(kind)[:40]}"
        raise UserError(f"{directory}: {cause}, and only plain LoRA is read here; {REMEDY}")
    weights = Path(directory) / WEIGHTS
    if not weights.is_file():
        raise UserError(f"{directory}: no {WEIGHTS}; save the adapter as safetensors")
    try:
        tensors = load_file(weights)
    except (SafetensorError, OSError) as error:
        raise UserError(
            f"{weights}: not a readable safetensors file ({error}); save it again"
        ) from None
    return Adapter(config, pair_updates(tensors, weights))


def hash_adapter(directory) -> str:
    """Return what identifies an adapter, moved or copied: its configuration and weights."""
    return hashlib.sha256(
        "".join(sha256(Path(directory) / name) for name in (CONFIG, WEIGHTS)).encode()
    ).hexdigest()


def pair_updates(tensors: Mapping[str, Tensor], path) -> dict[str, tuple[Tensor, Tensor]]:
    """Return A and B by module; UserError unless there is nothing else."""
    names = [
        name.removeprefix(PREFIX).removesuffix(DOWN) for name in tensors if name.endswith(DOWN)
    ]
    pairs = {}
    for name in names:
        down, up = (tensors.get(PREFIX + name + part) for part in (DOWN, UP))
        if (
            down is None
            or up is None
            or down.dim() != 2
            or up.dim() != 2
            or len(down) != up.shape[1]
        ):
            raise UserError(f"{path}: {name} has no matrices A and B of one rank; {REMEDY}")
        pairs[name] = down.float(), up.float()
    if not pairs or len(tensors) != 2 * len(pairs):
        raise UserError(f"{path}: holds other tensors than a LoRA's A and B; {REMEDY}")
    return pairs


def find_linear(model: nn.Module) -> dict[str, nn.Linear]:
    """Return the linear layers below the head by name; those that keep their weights transposed
    (GPT-2's Conv1D) become usual ones.
    """
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child).__name__ == "Conv1D" and child.weight.dim() == 2:
                columns, rows = child.weight.shape
                linear = nn.Linear(columns, rows, device="meta")
                linear.weight = nn.Parameter(
                    child.weight.detach().T.contiguous(), child.weight.requires_grad
                )
                linear.bias = child.bias
                setattr(parent, name, linear)
    head = model.get_output_embeddings()
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and module is not head
    }


@torch.no_grad()
def merge_adapter(model: nn.Module, directory) -> None:
    """Add an adapter's updates to the weights of its model; UserError where it is of another."""
    adapter, linear = read_adapter(directory), find_linear(model)
    for name, (down, up) in adapter.updates.items():
        module = linear.get(name) or linear.get(name.removeprefix(f"{model.base_model_prefix}."))
        if module is None or module.weight.shape != (len(up), down.shape[1]):
            there = f"has {tuple(module.weight.shape)}" if module else "has no such layer"
            raise UserError(
                f"{directory}: updates {name} ({len(up)} by {down.shape[1]}), and the model"
                f" {there}; give the model that it was trained on"
                f" ({adapter.config.get('base_model_name_or_path')})"
            )
        module.weight += (adapter.scale(name) * (up @ down)).to(module.weight.device)
