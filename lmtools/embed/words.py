"""Contextual word vectors: for each word of a text one vector a layer, of a two-way model the
states of both directions (Peters et al. 2018, Section 3), of any other the mean of its pieces'
states.

A cache keeps the vectors by the batch that a word stands in, since the last bits depend on all of
it: on one machine, a text has the same bytes with a cache and without, whatever else the cache
knows.
"""

import contextlib
import hashlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from lmtools.batching import cut_batches
from lmtools.checkpoint import load_model, model_hash
from lmtools.computing import Computing
from lmtools.device import autocast, choose_device, numerics, resolve_precision
from lmtools.embed.contextual import PoolingOptions
from lmtools.errors import UserError
from lmtools.lm import LanguageModel
from lmtools.score.cache import VECTORS, Cache, cache_directory
from lmtools.subword import UNK
from lmtools.version import __version__
from lmtools.windows import cut_windows

ROWS = 4096  # words, or pieces, a batch
# texts that are sorted by length, computed and given back together: what is held of any number of
# texts
TOGETHER = 1024
UNCACHED = Computing(cache="none")


class Embedded(NamedTuple):
    """A text as it was given, its words as the model reads them, and their vectors, float32 (words,
    layers, width).
    """

    text: str
    words: list[str]
    vectors: np.ndarray


def word_vectors(
    lm_dir, texts: Iterable[str], layers=None, computing: Computing = UNCACHED
) -> Iterator[Embedded]:
    """Yield the words and vectors of each text, in order and lazily, by the model in `lm_dir`; see
    WordVectors.
    """
    return load_word_vectors(lm_dir, layers, computing)(texts)


def load_word_vectors(lm_dir, layers=None, computing: Computing = UNCACHED) -> "WordVectors":
    """Load the word vectors of the neural model in `lm_dir`."""
    lm, subword = load_model(lm_dir)
    kind = TwoWayVectors if lm.two_way else PieceVectors
    made = kind(lm, subword, lm_dir, layers, computing)
    made.cache, made.identity = cache_directory(computing.cache), model_hash(lm_dir)
    return made


class WordVectors(ABC):
    """A function of texts that gives the vectors of their words.

    `layers`: numbers from 0, the embedding layer, to the last; None: all. The words are those
    between the spaces of the normalised text; a text without any has none. `rows`: words (of
    pieces: pieces) a batch, sentence boundaries counted. A text's vectors do not depend on what
    other texts there are, but for rounding. UserError unless the model has these layers.
    """

    cache = None  # a directory that keeps vectors between runs, of a model that has an `identity`
    identity = ""

    def __init__(self, lm: LanguageModel, subword, source, layers, computing: Computing):
        self.device = choose_device(computing.device)
        self.precision = resolve_precision(computing.precision, self.device)
        self.lm, self.subword = lm.to(self.device).eval(), subword
        pooling = PoolingOptions("all" if layers is None else tuple(layers))
        self.layers = pooling.choose_layers(self.lm.trunk.depth, source)
        self.rows = computing.rows or ROWS

    @property
    @abstractmethod
    def width(self) -> int:
        """The values of a vector; narrower layers are filled up with zeros."""

    @abstractmethod
    def count(self, sentences: list[list[int]], words: list[list[str]]) -> list[int]:
        """Return the number of positions that each sentence adds to a batch, without boundaries."""

    @abstractmethod
    def vectors(
        self, sentences: Sequence[Sequence[int]], words: Sequence[list[str]]
    ) -> list[np.ndarray]:
        """Return the vectors (its words, layers, width) of each sentence of a batch, float32."""

    @property
    def signature(self) -> dict[str, str]:
        """Return the signature of all that the vectors depend on beside the batch."""
        return {
            "lm": self.lm.settings.model, "model": self.identity[:16],
            "vocabulary": self.subword.hash[:16], "pool": "words",
            "layers": ",".join(map(str, self.layers)),
            **numerics(self.precision, self.device, self.rows), "version": __version__,
        }  # fmt: skip

    def __call__(self, texts: Iterable[str]) -> Iterator[Embedded]:
        texts, first = iter(texts), 1
        with contextlib.closing(Cache(self.cache, self.signature, VECTORS)) as store:
            while together := list(itertools.islice(texts, TOGETHER)):
                yield from self.together(together, first, store)
                first += len(together)

    def together(self, texts: list[str], first: int, store: Cache) -> list[Embedded]:
        """Return the words and vectors of texts that are held at once; `first`: the number of the
        first, for messages.
        """
        words = [self.subword.normaliser(text).split() for text in texts]
        sentences = self.subword.encode_batch(texts)
        result = [
            Embedded(text, [], np.empty((0, len(self.layers), self.width), dtype=np.float32))
            for text in texts
        ]
        for batch in self.plan(np.array(self.count(sentences, words))):
            made = self.of_batch([sentences[i] for i in batch], [words[i] for i in batch], store)
            for i, own in zip(batch, made, strict=True):
                if len(own) != len(words[i]):
                    raise UserError(
                        f"text {first + i}: its {len(words[i])} words became {len(own)} in"
                        " pieces; mend its spaces"
                    )
                # no view, which would keep the whole batch in memory
                result[i] = Embedded(texts[i], words[i], own.copy())
        return result

    def of_batch(
        self, sentences: list[list[int]], words: list[list[str]], store: Cache
    ) -> list[np.ndarray]:
        """Return the vectors of a batch: those of the cache where it knows all of its words, else
        computed and kept.
        """
        batch = hashlib.sha256(repr((sentences, words)).encode()).hexdigest()
        lengths = list(map(len, words))
        names = [(batch, number) for number in range(sum(lengths))]
        known = store.get(names)
        if names and len(known) == len(names):
            rows = np.stack([known[number] for number in range(len(names))])
            shaped = rows.reshape(len(names), len(self.layers), -1)
            return np.split(shaped, np.cumsum(lengths)[:-1])
        made = self.vectors(sentences, words)
        if list(map(len, made)) == lengths:
            store.put(zip(names, itertools.chain.from_iterable(made), strict=True))
        return made

    def plan(self, lengths: np.ndarray) -> list[list[int]]:
        """Indices of all lengths but 0, in batches of similar length."""
        order = np.argsort(lengths, kind="stable")
        order = order[lengths[order] > 0]
        if not len(order):
            return []
        cuts = cut_batches(lengths[order] + 2, self.rows)
        return [batch.tolist() for batch in np.split(order, cuts)]

    @torch.inference_mode()
    def states(self, sentences: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
        """States (B, T, layers, width) of a batch, BOS and EOS too, and lengths (B,)."""
        examples = self.lm.objective.scoring(sentences).to(self.device)
        with autocast(self.device, self.precision):
            layers = list(self.lm.trunk.layer_states(*examples.read))
        chosen = [layers[i].float() for i in self.layers]
        width = max(states.shape[2] for states in chosen)
        filled = [F.pad(states, (0, width - states.shape[2])) for states in chosen]
        return torch.stack(filled, dim=2).cpu().numpy(), examples.lengths.cpu().numpy()


class TwoWayVectors(WordVectors):
    """Of a two-way model: left-to-right state ++ right-to-left state, each of D values; layer 0 is
    a word's own vector twice.
    """

    @property
    def width(self):
        return 2 * self.lm.trunk.width

    def count(self, sentences, words):
        return list(map(len, words))

    def vectors(self, sentences, words):
        states, lengths = self.states(sentences)
        inside = lengths - self.lm.objective.boundary
        return [state[1 : 1 + n] for state, n in zip(states, inside, strict=True)]


class PieceVectors(WordVectors):
    """Of a model that reads pieces: the mean of the states at a word's pieces. A state of a
    left-to-right model has read its piece and what stands before, one of T-TA all but its piece.

    A text that does not fit the model's positions is read in windows, each piece where it has most
    context.
    """

    @cached_property
    def width(self):
        return self.states([[UNK]])[0].shape[3]

    def count(self, sentences, words):
        return list(map(len, sentences))

    def vectors(self, sentences, words):
        cuts = [cut_windows(len(sentence), self.lm.longest) for sentence in sentences]
        parts = [s[w[0] : w[1]] for s, some in zip(sentences, cuts, strict=True) for w in some]
        states, _ = self.states(parts)
        made, part = [], iter(states)
        for sentence, some, own in zip(sentences, cuts, words, strict=True):
            pieces = [
                next(part)[1 + first : 1 + min(last, end - begin)]
                for begin, end, first, last in some
            ]
            spans = self.spans(sentence, own)
            sums = np.add.reduceat(np.concatenate(pieces), np.cumsum([0, *spans[:-1]]), axis=0)
            made.append(sums / np.array(spans, np.float32)[:, None, None])
        return made

    def spans(self, sentence: Sequence[int], words: list[str]) -> list[int]:
        """Return the number of pieces of each word. Characters have a mark between two words, which
        counts with the second.
        """
        spans = list(map(len, self.subword.segment(words)))
        if len(sentence) == sum(spans) + len(spans) - 1:
            spans[1:] = [span + 1 for span in spans[1:]]
        return spans if sum(spans) == len(sentence) else [len(sentence)]
