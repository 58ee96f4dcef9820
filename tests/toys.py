"""Tiny texts and settings that several tests use."""

import json
import random
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

from lmtools.models.checkpoint import prepare_directory, save_weights
from lmtools.models.lm import LanguageModel
from lmtools.models.settings import Batch, Optim, Settings
from lmtools.text.subword import BOS

VOCABULARY = (
    "the a king queen city went came to of and great river stone house they he she said unto him"
)
WORDS = VOCABULARY.split()


def sentences(count: int, seed: int, longest: int = 9) -> list[str]:
    """Random sentences in which words tend to be followed by their neighbour in WORDS."""
    rng = random.Random(seed)
    result = []
    for _ in range(count):
        word, line = rng.randrange(len(WORDS)), []
        for _ in range(rng.randint(1, longest)):
            line.append(WORDS[word])
            word = (word + 1) % len(WORDS) if rng.random() < 0.8 else rng.randrange(len(WORDS))
        result.append(" ".join(line))
    return result


OBJECTIVE = {"causal": "causal", "masked": "masked", "tta": "autoencoding", "lstm": "causal"}
TRANSFORMER = {"layers": 2, "dim": 16, "heads": 2, "ffn": 32, "positions": 16}
ARCH = dict.fromkeys(OBJECTIVE, TRANSFORMER) | {
    "lstm": {"layers": 2, "dim": 16, "units": 24, "dropout": 0.1},
    "seq2seq": TRANSFORMER | {"decoder_layers": 1},
}


def settings(model: str, **changes):
    base = {
        "model": model, "objective": OBJECTIVE.get(model, "translation"), "arch": ARCH[model],
        "optim": Optim(lr=5e-3, warmup=5), "batch": Batch(tokens=200),
        "epochs": 2, "precision": "float32", "log_every": 5, "checkpoint_every": 7,
        "valid_every": 10,
    }  # fmt: skip
    return Settings(**{**base, **changes})


def read_log(home: Path, key: str) -> list:
    """The rows of a training's log that have a value for `key`."""
    rows = map(json.loads, (home / "metrics.jsonl").read_text().splitlines())
    return [row for row in rows if key in row]


def saved_bytes(home: Path, *names: str) -> dict[tuple[str, str], bytes]:
    """Tensors of a training's files, without metadata; by default best and last."""
    return {
        (name, key): tensor.numpy().tobytes()
        for name in names or ("model", "checkpoint")
        for key, tensor in load_file(home / f"{name}.safetensors").items()
    }


def save_rough(folder: Path, how: Settings, subword) -> str:
    """Make a model's directory with random weights that differ much; its name."""
    if not folder.exists():
        torch.manual_seed(3)
        lm = LanguageModel(how, subword.size, np.arange(subword.size)[::-1])
        with torch.no_grad():
            for tensor in lm.parameters():
                tensor.add_(0.4 * torch.randn_like(tensor))
        prepare_directory(folder, how, subword)
        save_weights(folder, lm)
    return str(folder)


def look_for_the_future(module, vocabulary: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Assert that states change by a bit with no later token, and each with its own."""
    tokens, lengths = torch.randint(5, vocabulary, (2, 8)), torch.tensor([8, 3])
    before = module.hidden(tokens, lengths)
    for position in range(8):
        changed = tokens.clone()
        changed[:, position:] = (changed[:, position:] + 7) % vocabulary
        after = module.hidden(changed, lengths)
        assert torch.equal(before[:, :position], after[:, :position])
        assert not torch.equal(before[:, position], after[:, position])
    return tokens, before


@torch.inference_mode()
def grow_random_tree(module, vocabulary: int, longest: int) -> None:
    """Assert that a memory of prefixes, grown in random portions, gives the states of `hidden`."""
    rng, memory = np.random.default_rng(1), module.memory()
    prefixes: list[list[int]] = []
    states = []
    while len(prefixes) < 300:  # more than a memory holds at first
        parents, tokens = [], []
        for _ in range(rng.integers(1, 40)):
            parent = int(rng.integers(len(prefixes))) if prefixes else -1
            if parent >= 0 and len(prefixes[parent]) == longest:
                continue
            parents.append(parent)
            tokens.append(int(rng.integers(5, vocabulary)) if prefixes else BOS)
            prefixes.append([*(prefixes[parent] if parent >= 0 else []), tokens[-1]])
        if parents:
            states.append(memory.grow(np.array(parents), np.array(tokens)))
    expected = [
        module.hidden(torch.tensor([prefix]), torch.tensor([len(prefix)]))[0, -1]
        for prefix in prefixes
    ]
    assert max(map(len, prefixes)) > 8
    torch.testing.assert_close(torch.cat(states), torch.stack(expected), rtol=1e-5, atol=1e-5)
