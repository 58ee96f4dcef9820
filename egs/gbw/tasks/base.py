"""What a task is: how its files are read, its model, how right a prediction is; and the one loop in
which models are trained.
"""

import copy
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from inputs import Batch, Inputs, Sentences
from torch import Tensor, nn

from lmtools.base.errors import UserError

COMPRESSED = ("", ".gz", ".xz")
MAJORITY = "majority"  # in place of vectors: the commonest answer
POOL = 64  # batches whose examples are sorted by length together
ANSWERED = 64  # examples that are answered at once


class Example(NamedTuple):
    """What a model is asked: about one sentence or two, as words, and what is right."""

    sentences: tuple[tuple[str, ...], ...]
    gold: Any


@dataclass(frozen=True)
class Settings:
    """Of a task's model and its training. `word`: values of a word vector that the task learns
    itself, for words seen twice; `hidden`: units of an LSTM and direction; `mlp`: values of the
    layers after them.
    """

    epochs: int = 6
    batch: int = 32
    lr: float = 2e-3
    clip: float = 5.0
    dropout: float = 0.33
    word: int = 100
    hidden: int = 200
    layers: int = 2
    mlp: int = 100


class Outcome(NamedTuple):
    """What one training came to: `counts`, integers (test examples, K), which `Task.score` makes
    figures of; the task's first figure on dev after epochs.
    """

    counts: np.ndarray
    epochs: list[float]


class Set(NamedTuple):
    """Examples, their distinct sentences with vectors, and the file that they are from."""

    examples: list[Example]
    sentences: Sentences
    path: Path


class Task(ABC):
    """One task. `files`: names that a set's file may have, {set} in them; `figures`: names of what
    `score` gives, the first decides.
    """

    files: tuple[str, ...]
    figures: tuple[str, ...]
    sets = ("train", "dev", "test")
    seeds = True  # whether the outcome depends on one
    layer = "all"  # which layers of vectors it reads

    @abstractmethod
    def read(self, path: Path) -> list[Example]:
        """Return the examples of a file; UserError with the line for one of another form."""

    @abstractmethod
    def model(self, train: Sequence[Example], inputs: Inputs, settings: Settings) -> nn.Module:
        """Return a model of `train`'s labels, called with (a Batch for each of an example's
        sentences, examples) for the loss, a scalar; `predict` of the same gives a prediction an
        example.
        """

    @abstractmethod
    def count(self, gold: Any, predicted: Any) -> Sequence[int]:
        """Return what `score` needs of one example, integers that may be summed."""

    @abstractmethod
    def score(self, counts: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the figures, in per cent, of summed counts (..., K)."""

    def solve(self, sets: dict[str, Set], settings: Settings, seed: int) -> Outcome:
        """Learn from `train` and `dev`, answer `test`."""
        return train_task(self, sets, settings, seed)

    def majority(self, sets: dict[str, Set]) -> list[Any] | None:
        """Return answers for `test` by what is commonest in `train`; None where that is no
        answer.
        """
        return None

    def takes(self, vectors: str, static: bool) -> bool:
        """Return whether the task can be asked of vectors of that name; `static`: the same in each
        context.
        """
        return vectors != MAJORITY or type(self).majority is not Task.majority

    def find(self, folder: Path, name: str) -> Path:
        """Return the file of the set `name`; UserError where there is none."""
        tried = [
            folder / f"{file.format(set=name)}{suffix}"
            for file in self.files
            for suffix in COMPRESSED
        ]
        for path in tried:
            if path.exists():
                return path
        raise UserError(
            f"{tried[0]}: not there; give {' or '.join(self.files).format(set=name)}, plain,"
            " .gz or .xz"
        )


def train_task(task: Task, sets: dict[str, Set], settings: Settings, seed: int) -> Outcome:
    """Train the task's model on `train`, keep the weights that are best on `dev` after one of the
    later half of its epochs, count on `test`.

    Adam (Kingma and Ba 2015), its learning rate falls to 0 linearly.
    """
    torch.manual_seed(seed)
    draw = random.Random(seed)
    train = sets["train"]
    inputs = Inputs(train.sentences, settings.word, settings.dropout)
    model = task.model(train.examples, inputs, settings)
    optimiser = torch.optim.Adam(model.parameters(), lr=settings.lr, betas=(0.9, 0.98))
    steps = settings.epochs * -(-len(train.examples) // settings.batch)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, steps)
    best, weights, epochs = -1.0, {}, []
    for epoch in range(1, 1 + settings.epochs):
        model.train()
        for parts, chosen in batches(train, settings.batch, draw):
            optimiser.zero_grad()
            model(parts, [train.examples[i] for i in chosen]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
            optimiser.step()
            schedule.step()
        if epoch <= settings.epochs // 2:
            continue
        figure = float(task.score(count_all(task, model, sets["dev"]).sum(0))[0])
        epochs.append(figure)
        if figure > best:
            best, weights = figure, copy.deepcopy(model.state_dict())
    model.load_state_dict(weights)
    return Outcome(count_all(task, model, sets["test"]), epochs)


def batches(
    data: Set, size: int, draw: random.Random | None = None
) -> Iterator[tuple[list[Batch], list[int]]]:
    """Yield sentences as tensors and the numbers of the examples that they are of, those of similar
    length together: all in that order, or with `draw` in random order.
    """
    order = list(range(len(data.examples)))
    longest = [sum(map(len, example.sentences)) for example in data.examples]
    pool = len(order)
    if draw is not None:
        draw.shuffle(order)
        pool = POOL * size
    pools = [order[i : i + pool] for i in range(0, len(order), pool)]
    order = [i for pool in pools for i in sorted(pool, key=lambda i: longest[i])]
    cut = [order[i : i + size] for i in range(0, len(order), size)]
    if draw is not None:
        draw.shuffle(cut)
    for chosen in cut:
        asked = [data.examples[i].sentences for i in chosen]
        yield [data.sentences.batch(part) for part in zip(*asked, strict=True)], chosen


@torch.inference_mode()
def count_all(task: Task, model: nn.Module, data: Set) -> np.ndarray:
    """Return the counts of a model's predictions, (examples, K)."""
    model.eval()
    rows = {}
    for parts, chosen in batches(data, ANSWERED):
        examples = [data.examples[i] for i in chosen]
        counts = map(task.count, (e.gold for e in examples), model.predict(parts, examples))
        rows.update(zip(chosen, counts, strict=True))
    return np.array([rows[i] for i in range(len(rows))], dtype=np.int64)


def ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return per cent; 0 of nothing."""
    return 100 * part / np.maximum(whole, 1)


def f1(right: np.ndarray, predicted: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Return the harmonic mean of precision and recall, per cent."""
    return ratio(2 * right, predicted + gold)


class Biaffine(nn.Module):
    """Scores of pairs by a bilinear form and a linear one of both (Dozat and Manning 2017, Eqs. 4
    to 6): first (..., I, D) and second (..., J, D) -> (..., labels, I, J).
    """

    def __init__(self, width: int, labels: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(labels, width + 1, width + 1))
        nn.init.normal_(self.weight, std=width**-0.5)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        first, second = (
            torch.cat([side, side.new_ones(*side.shape[:-1], 1)], -1) for side in (first, second)
        )
        mixed = torch.einsum("...id,lde->...lie", first, self.weight)
        scores = mixed.flatten(-3, -2) @ second.transpose(-1, -2)
        return scores.unflatten(-2, mixed.shape[-3:-1])


def layer(width: int, out: int, dropout: float) -> nn.Sequential:
    """Return an affine layer, a rectifier, dropout."""
    return nn.Sequential(nn.Linear(width, out), nn.LeakyReLU(0.1), nn.Dropout(dropout))
