"""Contextual word vectors: for each word of a text one vector a layer, of a two-way model the
states of both directions (Peters et al. 2018, Section 3), of any other the mean of its pieces'
states.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from lmtools.base.batching import cut_batches
from lmtools.base.computing import USUAL, Computing
from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.models.device import autocast, choose_device, resolve_precision
from lmtools.score import load
from lmtools.score.base import Scorer
from lmtools.vectors.encoders import PoolingOptions

ROWS = 4096  # positions a batch
# texts that are sorted by length, computed and given back together: what is held of any number of
# texts
TOGETHER = 1024


class Embedded(NamedTuple):
    """A text, its words as the model reads them, and vectors (words, layers, width)."""

    text: str
    words: list[str]
    vectors: np.ndarray


def word_vectors(
    lm_dir, texts: Iterable[str], layers=None, computing: Computing = USUAL
) -> Iterator[Embedded]:
    """Yield the words and vectors of each text, lazily, by the model in `lm_dir`."""
    return load_word_vectors(lm_dir, layers, computing)(texts)


def load_word_vectors(lm_dir, layers=None, computing: Computing = USUAL) -> "WordVectors":
    """Load the word vectors of the neural model in `lm_dir`."""
    resolve_precision(computing.precision, choose_device(computing.device))  # never in integers
    model = load(LMSpec(str(lm_dir), head=False), replace(computing, engine="torch"))
    return WordVectors(model, layers, computing)


class WordVectors:
    """A function of texts that gives the vectors of their words: of a two-way model a word's
    position, left-to-right state ++ right-to-left state, of any other the mean of the states at its
    pieces. A state of a left-to-right model has read its piece and what stands before, one of T-TA
    all but its piece.

    `layers`: numbers from 0, the embedding layer, to the last; None: all. The words are those
    between the spaces of the normalised text; a text without any has none. `computing.rows`:
    positions a batch, sentence boundaries counted. A text's vectors do not depend on what other
    texts there are, but for rounding; one that does not fit the model's positions is read in
    windows, each piece where it has most context. UserError unless the model has these layers.
    """

    def __init__(self, model: Scorer, layers, computing: Computing):
        if model.depth is None:
            model.states((), ())
        self.model, self.rows = model, computing.rows or ROWS
        pooling = PoolingOptions("all" if layers is None else tuple(layers))
        self.layers = pooling.choose_layers(model.depth, model.source)

    @cached_property
    def width(self) -> int:
        with torch.inference_mode():
            states, _ = self.model.states([()], self.layers)
            return max(values.shape[2] for layer, values in states if layer in self.layers)

    def __call__(self, texts: Iterable[str]) -> Iterator[Embedded]:
        texts, first = iter(texts), 1
        while together := list(itertools.islice(texts, TOGETHER)):
            yield from self.together(together, first)
            first += len(together)

    def together(self, texts: list[str], first: int) -> list[Embedded]:
        """Return words and vectors of texts held at once, the first of number `first`."""
        words = [self.model.normalise(text).split() for text in texts]
        sentences = self.model.prepare(texts)
        result = [
            Embedded(text, [], np.empty((0, len(self.layers), self.width), dtype=np.float32))
            for text in texts
        ]
        for batch in self.plan(np.array(list(map(self.model.positions, sentences)))):
            batch_vectors = self.vectors([sentences[i] for i in batch], [words[i] for i in batch])
            for i, vectors in zip(batch, batch_vectors, strict=True):
                if len(vectors) != len(words[i]):
                    raise UserError(
                        f"text {first + i}: its {len(words[i])} words became {len(vectors)} in"
                        " pieces; mend its spaces"
                    )
                # no view, which would keep the whole batch in memory
                result[i] = Embedded(texts[i], words[i], vectors.copy())
        return result

    def plan(self, lengths: np.ndarray) -> list[list[int]]:
        order = np.argsort(lengths, kind="stable")
        order = order[lengths[order] > 0]
        if not len(order):
            return []
        cuts = cut_batches(lengths[order] + 2, self.rows)
        return [batch.tolist() for batch in np.split(order, cuts)]

    @torch.inference_mode()
    def states(self, sentences: Sequence[tuple]) -> tuple[np.ndarray, np.ndarray]:
        """Return a batch's states (B, T, layers, width), boundaries too, and lengths (B,)."""
        with autocast(self.model.device, self.model.precision):
            states, lengths = self.model.states(sentences, self.layers)
            layers = {layer: values.float() for layer, values in states if layer in self.layers}
        width = max(values.shape[2] for values in layers.values())
        filled = [F.pad(layers[i], (0, width - layers[i].shape[2])) for i in self.layers]
        return torch.stack(filled, dim=2).cpu().numpy(), lengths.cpu().numpy()

    def vectors(self, sentences: Sequence[tuple], words: Sequence[list[str]]) -> list[np.ndarray]:
        """Return the vectors (its words, layers, width) of each sentence of a batch, float32."""
        model, before = self.model, self.model.boundary[0]
        cuts = [model.windows(sentence) for sentence in sentences]
        parts = [
            model.window(sentence, begin, end)
            for sentence, windows in zip(sentences, cuts, strict=True)
            for begin, end, _, _ in windows
        ]
        vectors, part = [], iter(zip(parts, self.states(parts)[0], strict=True))
        for sentence, windows, line in zip(sentences, cuts, words, strict=True):
            pieces = [
                values[before + first : before + min(last, model.positions(window))]
                for (_, _, first, last), (window, values) in zip(
                    windows, itertools.islice(part, len(windows)), strict=True
                )
            ]
            spans = model.spans(sentence, line)
            sums = np.add.reduceat(np.concatenate(pieces), np.cumsum([0, *spans[:-1]]), axis=0)
            vectors.append(sums / np.array(spans, np.float32)[:, None, None])
        return vectors
