"""A model directory: config.yaml, model.safetensors, subword/; and the state of a training that can go on from it, in one file."""

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from lmtools.config import build, dump, load_yaml
from lmtools.errors import UserError
from lmtools.files import atomic_path, atomic_text, sha256
from lmtools.lm import LanguageModel
from lmtools.settings import Settings
from lmtools.subword import load_subword

WEIGHTS, STATE, CONFIG = "model.safetensors", "checkpoint.safetensors", "config.yaml"


def save_tensors(tensors: Mapping[str, torch.Tensor], path, **metadata) -> None:
    """Write tensors and JSON-able metadata as one safetensors file, atomically."""
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    with atomic_path(path) as temporary:
        save_file(tensors, temporary, {"lmtools": json.dumps(metadata)})  # one key: safetensors writes several in any order


@contextlib.contextmanager
def opened(path):
    """A safetensors file for reading; UserError if it is missing or damaged."""
    try:
        with safe_open(path, framework="pt") as stream:
            yield stream
    except (SafetensorError, OSError, json.JSONDecodeError) as error:
        raise UserError(f"{path}: not a readable safetensors file ({error}); train again or copy it again") from None


def load_tensors(path) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file by name."""
    with opened(path) as stream:
        names = stream.keys()
        return {name: stream.get_tensor(name) for name in names}


def load_metadata(path) -> dict:
    """The metadata that `save_tensors` wrote."""
    with opened(path) as stream:
        return json.loads((stream.metadata() or {}).get("lmtools", "{}"))


def prepare(directory, settings: Settings, subword, machine: Mapping | None = None) -> None:
    """Make `directory` a model directory of `settings` that lacks only its weights; `machine` says what they are trained on."""
    directory = Path(directory)
    subword.save_to(directory / "subword")
    with atomic_text(directory / CONFIG) as stream:
        stream.write(dump(settings))
        stream.write(f"vocabulary: {{size: {subword.size}, hash: {subword.hash}}}\n")
        if machine:  # beside the weights, not in them: equal weights are equal files
            stream.write(f"machine: {json.dumps(dict(machine))}\n")


def read_settings(directory) -> tuple[Settings, dict]:
    """The settings of a model directory and its `vocabulary` (size, hash)."""
    path = Path(directory) / CONFIG
    tree = load_yaml(path)
    vocabulary, _ = tree.pop("vocabulary", None), tree.pop("machine", None)
    if not isinstance(vocabulary, dict):
        raise UserError(f"{path}: no vocabulary; this is not the directory of a neural language model")
    return build(Settings, tree, path), vocabulary


def state_dict(lm: LanguageModel) -> dict[str, torch.Tensor]:
    """The model's tensors by name, a shared output matrix once."""
    return {name: tensor for name, tensor in lm.state_dict().items() if name != "output.weight" or not lm.shares}


def shared_tensors(lm: LanguageModel, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The output matrix under its own name where it is the input embedding."""
    if not lm.shares:
        return {}
    name = next(name for name, parameter in lm.trunk.named_parameters() if parameter is lm.trunk.shared)
    return {"output.weight": tensors[f"trunk.{name}"]}


def save_weights(directory, lm: LanguageModel, **metadata) -> None:
    """Write the weights into a prepared model directory."""
    save_tensors(state_dict(lm), Path(directory) / WEIGHTS, **metadata)


def load_state(lm: LanguageModel, tensors: Mapping[str, torch.Tensor], path) -> None:
    """Put tensors into the model; every name and shape must match."""
    try:
        lm.load_state_dict({**tensors, **shared_tensors(lm, tensors)})
    except (RuntimeError, KeyError) as error:
        raise UserError(f"{path}: does not fit config.yaml ({' '.join(str(error).split())[:200]}); train again") from None


def load_model(directory) -> tuple[LanguageModel, object]:
    """The language model of a directory, ready to score (on the CPU, in evaluation mode), and its subword model."""
    settings, vocabulary = read_settings(directory)
    subword = load_subword(Path(directory) / "subword")
    if subword.hash != vocabulary.get("hash"):
        raise UserError(f"{directory}/subword: not the vocabulary that the model was trained with; copy the whole model directory again")
    path = Path(directory) / WEIGHTS
    lm = LanguageModel(settings, subword.size, words=subword.words)
    load_state(lm, load_tensors(path), path)
    return lm.eval(), subword


def model_hash(directory) -> str:
    """Identifies a model by its weights, settings and vocabulary; the same after a move or a copy."""
    settings, vocabulary = read_settings(directory)
    made_of = settings.model, settings.objective, settings.criterion, settings.arch, settings.output
    parts = (*made_of, vocabulary["hash"], sha256(Path(directory) / WEIGHTS))
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclasses.dataclass
class Progress:
    """How far a training is."""

    step: int = 0
    best: float | None = None  # the lowest validation loss so far, nats a token
    worse: int = 0  # validations since then
    shrunk: int = 0  # how often a plateau has lowered the learning rate
    tokens: int = 0
    seconds: float = 0.0
    done: bool = False


def save_training(directory, lm: LanguageModel, optimiser: torch.optim.Optimizer, progress: Progress, fingerprint: str) -> None:
    """Write all that an exact continuation needs into one file, atomically."""
    tensors = {f"model.{name}": tensor for name, tensor in state_dict(lm).items()}
    for index, state in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{index}.{name}": torch.as_tensor(value) for name, value in state.items()}
    save_tensors(tensors, Path(directory) / STATE, progress=dataclasses.asdict(progress), fingerprint=fingerprint)


def load_training(directory, lm: LanguageModel, optimiser: torch.optim.Optimizer) -> Progress:
    """Put the saved weights and optimiser state back; returns how far the training was."""
    path = Path(directory) / STATE
    tensors = load_tensors(path)
    load_state(lm, {name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}, path)
    state: dict[int, dict] = {}
    for name, tensor in tensors.items():
        kind, _, rest = name.partition(".")
        if kind == "optimiser":
            index, _, field = rest.partition(".")
            state.setdefault(int(index), {})[field] = tensor
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    return Progress(**load_metadata(path)["progress"])


def training_metadata(directory) -> dict | None:
    """The metadata (fingerprint, progress) of a saved training, or None where there is none."""
    path = Path(directory) / STATE
    return load_metadata(path) if path.exists() else None
