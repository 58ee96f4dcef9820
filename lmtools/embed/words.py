"""Contextual word vectors of a two-way language model: for each word of a text one vector a layer
(Peters et al. 2018, Section 3).
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from lmtools.batching import cut_batches
from lmtools.checkpoint import load_model
from lmtools.device import autocast, choose_device, resolve_precision
from lmtools.embed.contextual import How
from lmtools.errors import UserError
from lmtools.lm import LanguageModel

ROWS = 4096  # words a batch
# texts that are sorted by length, computed and given back together: what is held of any number of
# texts
TOGETHER = 1024


class Embedded(NamedTuple):
    """A text as it was given, its words as the model reads them, and their vectors, float32 (words,
    layers, 2 D).
    """

    text: str
    words: list[str]
    vectors: np.ndarray


def word_vectors(
    lm_dir, texts: Iterable[str], layers=None, device="auto", precision="float32", rows=None
) -> Iterator[Embedded]:
    """The words and vectors of each text, in order and lazily, by the two-way model in `lm_dir`;
    see WordVectors.
    """
    return WordVectors(lm_dir, layers, device, precision, rows)(texts)


class WordVectors:
    """A function of texts that gives the vectors of their words: left-to-right state ++
    right-to-left state, each of D values.

    `layers`: numbers from 0, a word's own vector twice, to the last LSTM layer; None: all. The
    words are those between the spaces of the normalised text; a text without any has none. `rows`:
    words a batch, sentence boundaries counted. A text's vectors do not depend on what other texts
    there are, but for rounding. UserError unless the model in `lm_dir` is a two-way one and has
    these layers.
    """

    def __init__(self, lm_dir, layers=None, device="auto", precision="float32", rows=None):
        self.device = choose_device(device)
        self.precision = resolve_precision(precision, self.device)
        lm, self.subword = load_model(lm_dir)
        self.lm = two_way(lm, lm_dir).to(self.device)
        how = How("all" if layers is None else tuple(layers))
        self.layers = how.choose_layers(self.lm.trunk.depth, lm_dir)
        self.width = 2 * self.lm.trunk.width
        self.rows = rows or ROWS

    def __call__(self, texts: Iterable[str]) -> Iterator[Embedded]:
        texts, first = iter(texts), 1
        while together := list(itertools.islice(texts, TOGETHER)):
            yield from self.together(together, first)
            first += len(together)

    def together(self, texts: list[str], first: int) -> list[Embedded]:
        """The words and vectors of texts that are held at once; `first`: the number of the first,
        for messages.
        """
        words = [self.subword.normaliser(text).split() for text in texts]
        sentences = self.subword.encode_batch(texts)
        result = [
            Embedded(text, [], np.empty((0, len(self.layers), self.width), dtype=np.float32))
            for text in texts
        ]
        for batch in self.plan(np.array([len(some) for some in words])):
            vectors, lengths = self.vectors([sentences[i] for i in batch])
            for place, i in enumerate(batch):
                if lengths[place] != len(words[i]):
                    raise UserError(
                        f"text {first + i}: its {len(words[i])} words became {lengths[place]} in"
                        " pieces; mend its spaces"
                    )
                # no view, which would keep the whole batch in memory
                own = vectors[place, : lengths[place]].copy()
                result[i] = Embedded(texts[i], words[i], own)
        return result

    def plan(self, lengths: np.ndarray) -> list[list[int]]:
        """Indices of all lengths but 0, in batches of similar length."""
        order = np.argsort(lengths, kind="stable")
        order = order[lengths[order] > 0]
        if not len(order):
            return []
        cuts = cut_batches(lengths[order] + 2, self.rows)
        return [batch.tolist() for batch in np.split(order, cuts)]

    @torch.inference_mode()
    def vectors(self, sentences: Sequence[Sequence[int]]) -> tuple[np.ndarray, list[int]]:
        """Vectors (B, T, layers, 2 D) of a batch of spelled sentences, and the number of words of
        each.
        """
        examples = self.lm.objective.scoring(sentences).to(self.device)
        with autocast(self.device, self.precision):
            layers = list(self.lm.trunk.layer_states(*examples.read))
        # BOS has gone, EOS of the longest too
        chosen = torch.stack([layers[i][:, 1:-1].float() for i in self.layers], dim=2)
        return chosen.cpu().numpy(), (examples.lengths - self.lm.objective.boundary).tolist()


def two_way(lm: LanguageModel, source) -> LanguageModel:
    """The model itself; UserError unless it has vectors of words."""
    if not lm.two_way:
        raise UserError(
            f"{source}: a {lm.settings.model} model has no word vectors; give a two-way one, such"
            " as conf/elmo.yaml trains"
        )
    return lm
