"""A model directory: config.yaml, model.safetensors, subword/; and the state of a training that can
go on from it, in one file.
"""

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
import yaml
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from lmtools.base.atomic import atomic_path, atomic_text
from lmtools.base.config import as_tree, build, dump, load_yaml
from lmtools.base.errors import UserError
from lmtools.base.files import cannot, refuse_pipe, sha256
from lmtools.base.seal import SEAL, Damaged, add_seal, add_yaml_seal, check_seal, digest
from lmtools.base.specs import WEIGHTS
from lmtools.models.lm import LanguageModel
from lmtools.models.objectives import OBJECTIVES
from lmtools.models.settings import Settings
from lmtools.text.subword import load_subword

STATE, CONFIG = "checkpoint.safetensors", "config.yaml"
# in config.yaml, of which no hash is made: what the weights were trained on, and `describe_model`
MACHINE, FACTS = "machine", "facts"
REMEDY = (
    "copy the model directory again, or run the same lmtools train command again, which mends it or"
    " trains anew"
)


def save_tensors(tensors: Mapping[str, torch.Tensor], path, **metadata) -> None:
    """Write tensors and metadata, with a digest and a seal, as a safetensors file, atomically."""
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    described = json.dumps(add_seal({**metadata, "tensors": tensors_digest(tensors)}))
    with atomic_path(path, follow=False, failures=(SafetensorError,)) as temporary:
        # one key: safetensors writes several in any order
        save_file(tensors, temporary, {"lmtools": described})


def tensors_digest(tensors: Mapping[str, torch.Tensor]) -> str:
    """Return the hexadecimal SHA-256 of names, types, shapes and values in any order."""
    hashed = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        hashed.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        hashed.update(tensor.reshape(-1).view(torch.uint8).numpy())
    return hashed.hexdigest()


@contextlib.contextmanager
def open_tensors(path) -> Iterator[tuple]:
    """Yield an open safetensors file and its metadata; Damaged, or UserError if unreadable."""
    refuse_pipe(path)
    try:
        open(path, "rb").close()  # safetensors calls every file missing that it cannot open
    except OSError as error:
        raise cannot("read", path, error) from None
    try:
        with safe_open(path, framework="pt") as stream:
            metadata = json.loads(stream.metadata()["lmtools"])
            if "tensors" in metadata:  # no file of an older version
                metadata = {SEAL: metadata[SEAL], **metadata}
            yield stream, check_seal(metadata, path, REMEDY)
    except (
        SafetensorError,
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise Damaged(
            f"{path}: not a readable safetensors file ({' '.join(str(error).split())}); {REMEDY}"
        ) from None


def load_checked(path) -> tuple[dict[str, torch.Tensor], dict]:
    """Return a safetensors file's tensors by name, and metadata; Damaged unless as written."""
    with open_tensors(path) as (stream, metadata):
        tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118 (no mapping)
    if "tensors" in metadata and metadata["tensors"] != tensors_digest(tensors):
        raise Damaged(f"{path}: damaged (its tensors are not those that were written); {REMEDY}")
    return tensors, metadata


def load_metadata(path) -> dict:
    """Return the metadata that `save_tensors` wrote."""
    with open_tensors(path) as (_, metadata):
        return metadata


def prepare_directory(
    directory,
    settings: Settings,
    subword,
    machine: Mapping | None = None,
    facts: Mapping | None = None,
) -> None:
    """Make a model directory that lacks only its weights; `machine`, `facts`: for config.yaml."""
    directory, text = Path(directory), config_text(settings, subword)
    subword.save_to(directory / "subword", follow=False)
    # beside the weights, not in them: equal weights are equal files
    for name, entry in ((MACHINE, machine), (FACTS, facts)):
        if entry:
            text += f"{name}: {json.dumps(dict(entry))}\n"
    with atomic_text(directory / CONFIG, follow=False) as stream:
        stream.write(add_yaml_seal(text))


def describe_model(lm: LanguageModel, subword) -> dict:
    """Return facts of a model: family, parameters, vocabulary, criterion with its settings."""
    words = subword.words
    return {
        "family": lm.trunk.title,
        "parameters": sum(parameter.numel() for parameter in lm.parameters()),
        "vocabulary": {
            "scheme": (words.pieces if words else subword).scheme,
            "size": subword.size,
            "words": words and words.size,
        },
        "criterion": {"name": lm.settings.criterion, **as_tree(lm.settings.output_layer)},
    }


def config_text(settings: Settings, subword) -> str:
    """Return the part of config.yaml on the model that its weights belong to."""
    return f"{dump(settings)}vocabulary: {{size: {subword.size}, hash: {subword.hash}}}\n"


def is_prepared(directory, settings: Settings, subword) -> bool:
    """Return whether the directory has the files of `prepare_directory`, undamaged."""
    try:
        kept, wanted = load_subword(Path(directory) / "subword"), config_text(settings, subword)
        return kept.hash == subword.hash and read_config(directory) == yaml.safe_load(wanted)
    except UserError:
        return False


def read_config(directory) -> dict:
    """Read config.yaml of a model directory without the machine and the facts, its seal checked."""
    path = Path(directory) / CONFIG
    # a digest in the weights decides
    tree = check_seal(load_yaml(path), path, REMEDY, warn=False)
    return {name: value for name, value in tree.items() if name not in (MACHINE, FACTS)}


def read_settings(directory) -> tuple[Settings, dict]:
    """Return the settings of a model directory and its `vocabulary` (size, hash)."""
    path, tree = Path(directory) / CONFIG, read_config(directory)
    vocabulary = tree.pop("vocabulary", None)
    if not isinstance(vocabulary, dict):
        raise UserError(
            f"{path}: no vocabulary; this is not the directory of a neural language model"
        )
    tree.pop("lora", None)  # of older versions: their updates are in the weights
    return build(Settings, tree, path), vocabulary


def describe_architecture(directory) -> dict:
    """Return those settings of a model directory that make its weights and their shapes."""
    settings, _ = read_settings(directory)
    named = ("model", "objective", "criterion", "arch", "output")
    return {name: getattr(settings, name) for name in named}


def state_dict(lm: LanguageModel) -> dict[str, torch.Tensor]:
    """Return the model's tensors by name, a shared output matrix once."""
    return {
        name: tensor
        for name, tensor in lm.state_dict().items()
        if name != "output.weight" or not lm.shares
    }


def shared_tensors(
    lm: LanguageModel, tensors: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Return the output matrix under its own name where it is the input embedding."""
    if not lm.shares:
        return {}
    name = next(
        name for name, parameter in lm.trunk.named_parameters() if parameter is lm.trunk.shared
    )
    return {"output.weight": tensors[f"trunk.{name}"]}


def save_weights(directory, lm: LanguageModel, **metadata) -> None:
    """Write the weights into a prepared model directory; metadata name their config.yaml."""
    save_tensors(
        state_dict(lm), Path(directory) / WEIGHTS, config=digest(read_config(directory)), **metadata
    )


def load_state(lm: LanguageModel, tensors: Mapping[str, torch.Tensor], path) -> None:
    """Put tensors into the model; every name and shape must match."""
    try:
        lm.load_state_dict({**tensors, **shared_tensors(lm, tensors)})
    except (RuntimeError, KeyError) as error:
        raise UserError(
            f"{path}: does not fit config.yaml ({' '.join(str(error).split())[:200]}); train again"
        ) from None


def load_model(directory, pairs: bool = False) -> tuple[LanguageModel, object]:
    """Return LM (CPU, evaluation mode) and subword model; UserError for pairs unless `pairs`."""
    settings, vocabulary = read_settings(directory)
    if OBJECTIVES[settings.objective].pairs and not pairs:
        raise UserError(
            f"{directory}: a translation model, which reads a source beside each sentence; use it"
            " with lmtools score --source"
        )
    subword = load_subword(Path(directory) / "subword")
    if subword.hash != vocabulary.get("hash"):
        raise UserError(
            f"{directory}/subword: not the vocabulary that the model was trained with; copy the"
            " whole model directory again"
        )
    lm = LanguageModel(settings, subword.size, words=subword.words)
    load_state(lm, load_weights(directory), Path(directory) / WEIGHTS)
    return lm.eval(), subword


def load_weights(directory) -> dict[str, torch.Tensor]:
    """Return weights by name; Damaged unless as written with the directory's config.yaml."""
    path = Path(directory) / WEIGHTS
    tensors, metadata = load_checked(path)
    if metadata.get("config", "") not in ("", digest(read_config(directory))):
        raise Damaged(
            f"{path}: belongs to another {CONFIG} than the one beside it (of another training);"
            f" {REMEDY}"
        )
    return tensors


def model_hash(directory) -> str:
    """Return what identifies a model, moved or copied: weights, settings and vocabulary."""
    settings, vocabulary = read_settings(directory)
    made_of = settings.model, settings.objective, settings.criterion, settings.arch, settings.output
    path = Path(directory) / WEIGHTS
    parts = (*made_of, vocabulary["hash"], load_metadata(path).get("tensors") or sha256(path))
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclasses.dataclass
class Progress:
    """Progress of a training."""

    step: int = 0
    best: float | None = None  # the lowest validation loss so far, nats a token
    best_step: int | None = None  # where it was measured; None in files of older versions
    worse: int = 0  # validations since then
    shrunk: int = 0  # how often a plateau has lowered the learning rate
    epoch_loss: float | None = None  # of validation at the last epoch's end, for min_gain
    tokens: int = 0
    seconds: float = 0.0
    done: bool = False
    # losses of other validation texts, by name: at the first validation, and at `best_step`
    also: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)


def save_training(
    directory, lm: LanguageModel, optimiser, progress: Progress, fingerprint: str
) -> None:
    """Write all that an exact continuation needs into one file, atomically."""
    tensors = {f"model.{name}": tensor for name, tensor in state_dict(lm).items()}
    for index, state in optimiser.states().items():
        for name, value in state.items():
            tensors[f"optimiser.{index}.{name}"] = torch.as_tensor(value)
    metadata = {"progress": dataclasses.asdict(progress), "fingerprint": fingerprint}
    save_tensors(tensors, Path(directory) / STATE, **metadata)


def load_training(directory, lm: LanguageModel, optimiser) -> Progress:
    """Put the saved weights and the state of the optimisers back; return the progress."""
    path = Path(directory) / STATE
    tensors, metadata = load_checked(path)
    model: dict[str, torch.Tensor] = {}
    state: dict[int, dict] = {}
    for name, tensor in tensors.items():
        kind, _, rest = name.partition(".")
        if kind == "model":
            model[rest] = tensor
        elif kind == "optimiser":
            index, _, field = rest.partition(".")
            state.setdefault(int(index), {})[field] = tensor
    load_state(lm, model, path)
    optimiser.resume(state)
    return Progress(**metadata["progress"])


def training_metadata(directory) -> dict | None:
    """Return a saved training's metadata, None if there is none; Damaged if it cannot go on."""
    path = Path(directory) / STATE
    return load_checked(path)[1] if path.exists() else None
