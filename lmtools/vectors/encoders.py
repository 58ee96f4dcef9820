"""Sentence vectors, layer by layer, of a language model by pooling its states: from those of a
sentence's positions to one vector by mean, maximum, end or beginning. `encode` gives the vectors of
any encoder.
"""

import contextlib
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from lmtools.base.batching import count_rows, prepare_distinct
from lmtools.base.computing import USUAL, Computing
from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec, find_model
from lmtools.models.checkpoint import WEIGHTS
from lmtools.models.device import autocast
from lmtools.score import load
from lmtools.score.base import Scorer
from lmtools.score.cache import VECTORS, Cache
from lmtools.score.texts import Missing, run_batches
from lmtools.types import NUMERICS
from lmtools.vectors.static import LAST_MEAN, Encoder, PoolingOptions, StaticVectors, Tfidf


class Pool(NamedTuple):
    """One way to pool, for batches and, of a text that is read in several windows, over these.

    `states(states, inside, lengths)`: (B, T, D), which positions count (B, T) and how many there
    are (B,) -> (B, D). `windows(values, counts)`: the windows' vectors (P, D) and how many
    positions counted in each (P,) -> (D,).
    """

    states: Callable[[Tensor, Tensor, Tensor], Tensor]
    windows: Callable[[Tensor, Tensor], Tensor]
    ends: bool = False  # it takes a boundary token's state, whatever counts


def mean(states: Tensor, inside: Tensor, lengths: Tensor) -> Tensor:
    """Return the mean of the positions that count; zeros where none does."""
    counted = inside.to(states.dtype)
    return torch.bmm(counted[:, None], states)[:, 0] / counted.sum(1, keepdim=True).clamp(min=1)


def maximum(states: Tensor, inside: Tensor, lengths: Tensor) -> Tensor:
    """Return the greatest value of each dimension over what counts; zeros without."""
    greatest = states.masked_fill(~inside[..., None], -torch.inf).amax(1)
    return greatest.where(inside.any(1, keepdim=True), 0.0)


def end(states: Tensor, inside: Tensor, lengths: Tensor) -> Tensor:
    """Return the last position: the end, or the state that predicts it."""
    return states[torch.arange(len(states), device=states.device), lengths - 1]


def beginning(states: Tensor, inside: Tensor, lengths: Tensor) -> Tensor:
    """Return the first position: BOS or [CLS]."""
    return states[:, 0]


POOLS = {
    "mean": Pool(
        mean, lambda values, counts: (values * counts[:, None]).sum(0) / counts.sum().clamp(min=1)
    ),
    "max": Pool(
        maximum,
        lambda values, counts: (
            values[counts > 0].amax(0) if bool((counts > 0).any()) else values[0]
        ),
    ),
    "eos": Pool(end, lambda values, counts: values[-1], ends=True),
    "cls": Pool(beginning, lambda values, counts: values[0], ends=True),
}


class ContextualEncoder(Encoder):
    """The vectors of a language model: its states, pooled.

    Models without an end token, and left-to-right ones of ours, which never read the end: `eos` is
    the state after the last token, and there is no `cls`. UserError for what the model has not.
    """

    def __init__(self, model: Scorer, pooling: PoolingOptions):
        if pooling.masked and not model.masks:
            raise UserError(
                f"{model.source}: the model has no mask to predict from; leave --masked out"
            )
        if pooling.pool == "cls" and not model.boundary[1]:
            raise UserError(
                f"{model.source}: the first state of a left-to-right model has read nothing; use"
                " --pool eos"
            )
        self.model, self.pooling, self.rows = model, pooling, model.rows
        self.layers = pooling.choose_layers(model.depth, model.source)

    @property
    def signature(self) -> dict[str, str]:
        model = self.model.signature
        # of models of ours the pooling stands behind the vocabulary
        first = dict(islice(model.items(), 3)) if "vocabulary" in model else model
        rounding = {name: model[name] for name in NUMERICS}
        return {**first, **self.pooling.signature, **rounding, **model}

    def prepare(self, texts):
        return self.model.prepare(texts)

    def cost(self, sentence):
        model = self.model
        boundary, masked = sum(model.boundary), self.pooling.masked
        return max(1, count_rows(model.positions(sentence), model.longest, boundary, masked))

    @torch.inference_mode()
    def vectors(self, sentences: Sequence[tuple]) -> np.ndarray:
        """See Encoder; a long sentence is read in windows, each token with most context."""
        cuts = [self.model.windows(sentence) for sentence in sentences]
        parts = [
            (self.model.window(sentence, begin, end), first, last)
            for sentence, windows in zip(sentences, cuts, strict=True)
            for begin, end, first, last in windows
        ]
        vectors, counts = self.pool_parts(parts)  # (P, layers, D), (P,)
        if len(parts) > len(sentences):
            merge, sizes = POOLS[self.pooling.pool].windows, list(map(len, cuts))
            pairs = zip(vectors.flatten(1).split(sizes), counts.split(sizes), strict=True)
            vectors = torch.stack([merge(*pair) for pair in pairs]).unflatten(1, vectors.shape[1:])
        vectors = F.normalize(vectors, dim=-1) if self.pooling.unit else vectors
        return vectors.cpu().numpy()

    def pool_parts(self, parts: Sequence[tuple[tuple, int, int]]) -> tuple[Tensor, Tensor]:
        """Return vectors (P, layers, D) of windows (tokens, first, last), and what counted."""
        model, (before, after) = self.model, self.model.boundary
        with autocast(model.device, model.precision):
            states, lengths = model.states(
                [part for part, _, _ in parts], self.layers, self.pooling.masked
            )
            bounds = [(first, min(last, model.positions(part))) for part, first, last in parts]
            bounds = before + torch.tensor(bounds, device=model.device)
            at = torch.arange(max(1, int(lengths.max())), device=model.device)
            inside = (at >= bounds[:, :1]) & (at < bounds[:, 1:])
            if self.pooling.boundaries:
                end = lengths[:, None]
                inside |= (at < before) | ((at >= end - after) & (at < end))
            pool = POOLS[self.pooling.pool].states
            pooled = {
                layer: pool(values.float(), inside, lengths)
                for layer, values in states
                if layer in self.layers
            }
        width = max(vectors.shape[1] for vectors in pooled.values())
        filled = [F.pad(pooled[i], (0, width - pooled[i].shape[1])) for i in self.layers]
        return torch.stack(filled, dim=1), inside.sum(1)


STATICS = {"words": StaticVectors, "tfidf": Tfidf}


def load_encoder(
    lm: str, pooling: PoolingOptions = LAST_MEAN, computing: Computing = USUAL
) -> Encoder:
    """Load an encoder: our model, hf:DIR, words:F (vectors in a file), tfidf or tfidf:TEXT."""
    kind, _, rest = lm.partition(":")
    if kind == "tfidf" or (kind == "words" and rest):
        if pooling not in [PoolingOptions(layers) for layers in ("last", "all", (0,))]:
            raise UserError(
                f"{lm}: static vectors have layer 0 and the mean alone; leave --layer, --pool,"
                " --boundaries and --masked out"
            )
        return STATICS[kind](rest or None)
    lm = find_model(lm)
    path = Path(lm)
    if kind != "hf" and not any((path / name).exists() for name in ("config.json", WEIGHTS)):
        kinds = "the directory of a neural model, hf:DIR, words:F or tfidf"
        raise UserError(
            f"{lm}: {'an n-gram model has no vectors' if path.exists() else 'no such model'}; give"
            f" {kinds}"
        )
    return ContextualEncoder(load(LMSpec(lm, head=False), computing), pooling)


def encode(texts: Sequence[str], encoder: Encoder, cache=None) -> np.ndarray:
    """Return the vectors of `texts`, float32 (N, layers, D); equal texts have equal ones, whatever
    else is in the list (on a CPU; see lmtools.score.texts).

    `cache`: a directory that keeps vectors between runs, None for none.
    """
    sentences, which = prepare_distinct(texts, encoder.prepare)
    signature = encoder.signature | {"layers": ",".join(map(str, encoder.layers))}
    with contextlib.closing(Cache(cache, signature, VECTORS)) as store:
        missing = Missing(sentences, encoder, store)
        batches = run_batches(encoder, missing.work, lambda part: list(encoder.vectors(part)))
        with missing.progress(f"embed {encoder.signature['lm']}"):
            for number, vectors in enumerate(batches if missing.work else ()):
                missing.keep(number, vectors)
    if not sentences:
        return np.empty((0, len(encoder.layers), 0), np.float32)
    values = [missing.values[i].reshape(len(encoder.layers), -1) for i in range(len(sentences))]
    return np.stack(values)[which]
