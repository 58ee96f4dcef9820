"""Encoders turn prepared texts into sentence vectors, layer by layer; one class a kind of model."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from lmtools import __version__
from lmtools.checkpoint import WEIGHTS, load_model, model_hash
from lmtools.embed.pooling import POOLS
from lmtools.embed.static import StaticVectors
from lmtools.embed.tfidf import Tfidf
from lmtools.errors import UserError
from lmtools.lm import (
    LanguageModel,
    autocast,
    batch_rows,
    choose_device,
    numerics,
    resolve_precision,
)
from lmtools.models.masked import Masked
from lmtools.score.scorers import windows
from lmtools.subword import MASK


class Encoder(Protocol):
    """What `encode` asks of a model. A sentence is whatever `prepare` made of a text: hashable,
    equal for equal vectors.
    """

    signature: dict[str, str]
    layers: tuple[int, ...]
    rows: int | None  # model rows of a batch; None: it computes each sentence by itself

    def prepare(self, texts: Sequence[str]) -> list[tuple]:
        """One sentence a text: normalised and segmented."""

    def cost(self, sentence: tuple) -> int:
        """How many rows the model computes for the sentence; sentences of equal cost are computed
        in equal shapes.
        """

    def vectors(self, sentences: Sequence[tuple]) -> np.ndarray:
        """Sentence vectors, float32 (B, layers, D); narrower layers are filled up with zeros, which
        changes no cosine.
        """


class How(NamedTuple):
    """How sentence vectors are made of a model's states.

    `layers`: `last`, `all` or numbers, 0 the embedding layer. `pool`: a name of POOLS.
    `boundaries`: mean and max take the boundary tokens in. `masked`: of masked models, each
    position's state is from a copy in which it alone is masked; else from the intact input.
    """

    layers: str | tuple[int, ...] = "last"
    pool: str = "mean"
    boundaries: bool = False
    masked: bool = False

    def chosen(self, last: int, source: str) -> tuple[int, ...]:
        """The numbers of the layers of a model whose last one is `last`; UserError for those that
        are not there.
        """
        layers = {"last": (last,), "all": tuple(range(last + 1))}.get(self.layers, self.layers)
        missing = [layer for layer in layers if not 0 <= layer <= last]
        if missing or not layers:
            raise UserError(
                f"{source}: has the layers 0 (embedding) to {last}, no"
                f" {', '.join(map(str, missing)) or 'empty list'}"
            )
        if self.masked and 0 in layers:
            raise UserError(
                f"{source}: layer 0 of a masked position is the mask's own embedding in any"
                " sentence; leave it or --masked out"
            )
        return layers

    @property
    def signature(self) -> dict[str, str]:
        """What of it is not as usual, by name."""
        said = {"boundaries": self.boundaries, "masked": self.masked}
        return {"pool": self.pool} | {name: "yes" for name, value in said.items() if value}


class Batch(NamedTuple):
    """The states of a batch: pairs (layer, states (B, T, D)), lengths (B,), and how many boundary
    tokens come first and last.
    """

    states: Iterator[tuple[int, Tensor]]
    lengths: Tensor
    first: int
    last: int


class Contextual:
    """What encoders of contextual states share; a kind of model defines `read`, `longest`, `layers`
    and `device`.
    """

    how: How
    layers: tuple[int, ...]
    longest: int
    device: torch.device
    precision: str

    def read(self, sentences: Sequence[tuple]) -> Batch:
        """The states of sentences that fit the positions."""
        raise NotImplementedError

    @torch.inference_mode()
    def vectors(self, sentences: Sequence[tuple]) -> np.ndarray:
        """See Encoder; a sentence that does not fit the positions is read in windows, each token
        where it has most context.
        """
        cuts = [windows(len(s), self.longest) for s in sentences]
        parts = [
            (s[begin:end], first, last)
            for s, some in zip(sentences, cuts, strict=True)
            for begin, end, first, last in some
        ]
        vectors, counts = self.pooled(parts)  # (P, layers, D), (P,)
        if len(parts) > len(sentences):
            places = np.cumsum([0, *map(len, cuts)])
            merge = POOLS[self.how.pool].windows
            own = itertools.starmap(slice, itertools.pairwise(places))
            vectors = torch.stack(
                [
                    merge(vectors[some].flatten(1), counts[some]).view(vectors.shape[1:])
                    for some in own
                ]
            )
        return vectors.cpu().numpy()

    def pooled(self, parts: Sequence[tuple[tuple, int, int]]) -> tuple[Tensor, Tensor]:
        """Vectors (P, layers, D) of windows (tokens, first, last), of whose tokens first:last
        count, and how many positions counted.
        """
        with autocast(self.device, self.precision):
            batch = self.read([part for part, _, _ in parts])
            bounds = torch.tensor(
                [(first, min(last, len(part))) for part, first, last in parts], device=self.device
            )
            at = torch.arange(int(batch.lengths.max()), device=self.device)
            inside = (at >= batch.first + bounds[:, :1]) & (at < batch.first + bounds[:, 1:])
            if self.how.boundaries:
                inside |= (at < batch.first) | (
                    (at >= batch.lengths[:, None] - batch.last) & (at < batch.lengths[:, None])
                )
            pool = POOLS[self.how.pool].states
            found = {
                layer: pool(states.float(), inside, batch.lengths)
                for layer, states in batch.states
                if layer in self.layers
            }
        width = max(vectors.shape[1] for vectors in found.values())
        made = [F.pad(found[layer], (0, width - found[layer].shape[1])) for layer in self.layers]
        return torch.stack(made, dim=1), inside.sum(1)


class Neural(Contextual):
    """A model trained by `lmtools train`, of any family; of two-way models positions are words.

    Left-to-right models never read the end of sentence: `eos` is the state that predicts it, after
    the last token, and there is no `cls`.
    """

    def __init__(
        self,
        lm: LanguageModel,
        subword,
        source: str,
        identity: str,
        how: How,
        device="auto",
        precision="float32",
        rows=None,
    ):
        self.device = choose_device(device)
        self.precision, self.rows = (
            resolve_precision(precision, self.device),
            batch_rows(rows, self.device),
        )
        self.lm, self.subword, self.how = lm.to(self.device).eval(), subword, how
        self.longest = lm.longest
        if how.masked and not isinstance(lm.trunk, Masked):
            raise UserError(
                f"{source}: a {lm.settings.model} model has no mask to predict from; leave"
                " --masked out"
            )
        if how.pool == "cls" and lm.objective.boundary < 2:
            raise UserError(
                f"{source}: the first state of a left-to-right model has read nothing; use"
                " --pool eos"
            )
        self.layers = how.chosen(lm.trunk.depth, source)
        self.signature = {
            "lm": lm.settings.model, "model": identity[:16], "vocabulary": subword.hash[:16],
            **how.signature,
            **numerics(self.precision, self.device, self.rows), "version": __version__,
        }  # fmt: skip

    def prepare(self, texts):
        return [tuple(ids) for ids in self.subword.encode_batch(texts)]

    def cost(self, sentence):
        cuts, width = (
            windows(len(sentence), self.longest),
            min(len(sentence), self.longest) + self.lm.objective.boundary,
        )
        return len(cuts) * (width * width if self.how.masked else width)

    def read(self, sentences):
        examples = self.lm.objective.scoring(sentences).to(self.device)
        last = self.lm.objective.boundary - 1
        if self.how.masked:
            states = masked_layers(
                self.lm.trunk, examples.inputs, examples.lengths, MASK, self.layers
            )
        else:
            states = up_to(max(self.layers), self.lm.trunk.layer_states(*examples.read))
        return Batch(states, examples.lengths, 1, last)


class TwoWay(Neural):
    """A two-way model, whose positions are words of several tokens: windows are not cut, any number
    of words fits.
    """

    def cost(self, sentence):
        return len(self.subword.words.split(sentence)) + self.lm.objective.boundary

    def pooled(self, parts):
        split = self.subword.words.split
        return super().pooled([(part, 0, len(split(part))) for part, _, _ in parts])


def up_to(deepest: int, states: Iterator[Tensor]) -> Iterator[tuple[int, Tensor]]:
    """The states of each layer with its number; what is above the deepest is not computed."""
    for number, state in enumerate(states):
        yield number, state
        if number == deepest:
            return


def masked_layers(
    trunk: Masked, inputs: Tensor, lengths: Tensor, mask: int, layers: Sequence[int]
) -> Iterator[tuple[int, Tensor]]:
    """States (B, T, D) of each layer, that of each position from a copy in which it alone is
    masked; zeros at padding.
    """
    for layer in layers:
        states = None
        # sentences of one length go through together, without padding
        for length in lengths.unique().tolist():
            some = (lengths == length).nonzero()[:, 0]
            own = trunk.masked_states(inputs[some, :length], mask, layer).float()
            states = own.new_zeros((*inputs.shape, own.shape[-1])) if states is None else states
            states[some, :length] = own
        yield layer, states


def static(make, source: str, how: How) -> Encoder:
    """A static encoder; UserError where contextual states are asked for."""
    if (
        how.masked
        or how.boundaries
        or how.pool != "mean"
        or how.layers not in ("last", "all", (0,))
    ):
        raise UserError(
            f"{source}: static vectors have layer 0 and the mean alone; leave --layer, --pool,"
            " --boundaries and --masked out"
        )
    return make()


STATICS = {"words": StaticVectors, "tfidf": Tfidf}


def load_encoder(
    lm: str,
    layers="last",
    pool="mean",
    boundaries=False,
    masked=False,
    device="auto",
    precision="float32",
    rows=None,
) -> Encoder:
    """The encoder of `lm`: a model directory of ours, hf:DIR (Hugging Face), words:F (vectors in a
    file), tfidf or tfidf:TEXT; see How.

    `rows`: model rows of a batch, None: what suits the device.
    """
    how = How(layers, pool, boundaries, masked)
    kind, _, rest = lm.partition(":")
    if kind == "tfidf" or (kind == "words" and rest):
        return static(lambda: STATICS[kind](rest or None), lm, how)
    if kind == "hf" or (Path(lm) / "config.json").exists():
        # transformers is an optional dependency
        from lmtools.embed.huggingface import load_huggingface

        return load_huggingface(lm.removeprefix("hf:"), how, device, precision, rows)
    path = Path(lm)
    if not (path / WEIGHTS).exists():
        kinds = "the directory of a neural model, hf:DIR, words:F or tfidf"
        raise UserError(
            f"{lm}: {'an n-gram model has no vectors' if path.exists() else 'no such model'}; give"
            f" {kinds}"
        )
    model, subword = load_model(path)
    return (TwoWay if model.two_way else Neural)(
        model, subword, lm, model_hash(path), how, device, precision, rows
    )
