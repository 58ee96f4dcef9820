"""What the models of all tasks read: a word vector of their own and beside it those of a language
model, its layers mixed by learned weights.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from lmtools.base.errors import UserError
from lmtools.text import NORMALISERS
from lmtools.vectors.static import StaticVectors

NONE, RANDOM, STATIC = "none", "random", ".vec"
WIDTH = 256  # of random vectors
PAD, UNKNOWN = 0, 1
Words = tuple[str, ...]


class Vectors(NamedTuple):
    """Vectors of words: `table` (rows, layers, width), float32, and each word's row."""

    table: np.ndarray
    rows: np.ndarray


class Batch(NamedTuple):
    """Sentences beside each other, filled up with PAD and zeros: words (B, T), vectors (B, T,
    layers, width) or None, lengths (B,).
    """

    words: Tensor
    vectors: Tensor | None
    lengths: Tensor

    @property
    def inside(self) -> Tensor:
        """Return which places are words, bool (B, T)."""
        return torch.arange(self.words.shape[1]) < self.lengths[:, None]


class Sentences:
    """The distinct sentences of a set, their vectors, and the numbers of the words that the
    training set knows.
    """

    def __init__(self, sentences: Sequence[Words], vectors: Vectors | None, known: dict[str, int]):
        begins = np.cumsum([0, *map(len, sentences)])
        self.begin = dict(zip(sentences, begins.tolist(), strict=False))
        self.vectors, self.known = vectors, known
        ids = [known.get(word, UNKNOWN) for sentence in sentences for word in sentence]
        self.ids = np.array(ids, dtype=np.int64)

    def batch(self, chosen: Sequence[Words]) -> Batch:
        """Return these sentences as tensors."""
        lengths = list(map(len, chosen))
        words = np.full((len(chosen), max(lengths)), PAD)
        vectors = None
        if self.vectors is not None:
            table = self.vectors.table
            vectors = np.zeros((*words.shape, *table.shape[1:]), np.float32)
        for n, sentence in enumerate(chosen):
            begin, size = self.begin[sentence], len(sentence)
            words[n, :size] = self.ids[begin : begin + size]
            if vectors is not None:
                vectors[n, :size] = self.vectors.table[self.vectors.rows[begin : begin + size]]
        tensor = None if vectors is None else torch.from_numpy(vectors)
        return Batch(torch.from_numpy(words), tensor, torch.tensor(lengths))


def stack(batches: Sequence[Batch]) -> Batch:
    """Return batches below each other as one, filled up to the longest."""
    most = max(batch.words.shape[1] for batch in batches)

    def filled(tensor: Tensor) -> Tensor:
        return nn.functional.pad(tensor, [0, 0] * (tensor.dim() - 2) + [0, most - tensor.shape[1]])

    words, vectors, lengths = zip(*batches, strict=True)
    return Batch(
        torch.cat([*map(filled, words)]),
        None if vectors[0] is None else torch.cat([*map(filled, vectors)]),
        torch.cat(lengths),
    )


def distinct(sentences: Iterable[Words]) -> list[Words]:
    """Return each sentence once, in the order in which they come."""
    return list(dict.fromkeys(sentences))


def number_words(sentences: Iterable[Words]) -> dict[str, int]:
    """Return numbers from 2 of the words that occur twice; 0 and 1 are PAD and UNKNOWN."""
    counts = Counter(word for sentence in sentences for word in sentence)
    return {word: 2 + n for n, word in enumerate(w for w, times in counts.items() if times > 1)}


def load_vectors(source: str, name: str, sentences: Sequence[Words]) -> Vectors | None:
    """Return the vectors of a set's distinct sentences: of none, random ones that only depend on
    the word, those of a text file of static vectors (.vec; zeros for words that it lacks), or of
    SOURCE/NAME.npz by lmtools embed.
    """
    if source == NONE:
        return None
    if source == RANDOM or source.endswith(STATIC):
        types, rows = np.unique(
            [word for sentence in sentences for word in sentence], return_inverse=True
        )
        return Vectors((draw if source == RANDOM else look_up)(types.tolist(), source), rows)
    return read_vectors(Path(source) / f"{name}.npz", sentences)


def draw(types: Sequence[str], source: str) -> np.ndarray:
    """Return normal values that depend on the word's spelling alone."""
    drawn = [np.random.default_rng(zlib.crc32(word.encode())).normal(size=WIDTH) for word in types]
    return np.array(drawn, np.float32)[:, None]


def look_up(types: Sequence[str], source: str) -> np.ndarray:
    """Return the file's vectors, in lower case where it lacks the word as it is."""
    vectors = StaticVectors(source, NORMALISERS["none"])
    vectors.prepare([*types, *map(str.lower, types)])
    zeros = np.zeros(vectors.width, np.float32)
    held = vectors.held
    return np.stack([held.get(w, held.get(w.lower(), zeros)) for w in types])[:, None]


def read_vectors(path, sentences: Sequence[Words]) -> Vectors:
    """Return the vectors that lmtools embed made of sentences; UserError where they are of
    others.
    """
    try:
        with np.load(path) as arrays:
            vectors, offsets = arrays["vectors"], arrays["offsets"]
    except (OSError, KeyError, ValueError) as error:
        raise UserError(
            f"{path}: no word vectors ({error}); make them with lmtools embed"
        ) from None
    if np.diff(offsets).tolist() != list(map(len, sentences)):
        raise UserError(
            f"{path}: vectors of other words than the task's; embed its text by an LM whose"
            " normaliser leaves words as they are"
        )
    return Vectors(vectors, np.arange(len(vectors)))


class Inputs(nn.Module):
    """A batch of sentences -> (B, T, width): the task's own word vectors, beside them one vector of
    all layers, g sum_j softmax(s)_j h_j (Peters et al. 2018, Eq. 1); dropout.
    """

    def __init__(self, train: Sentences, width: int, dropout: float):
        super().__init__()
        vectors = train.vectors
        self.own = nn.Embedding(2 + len(train.known), width, padding_idx=PAD)
        self.dropout = nn.Dropout(dropout)
        self.width = width
        self.mixed = vectors is not None
        if vectors is not None:
            layers, further = vectors.table.shape[1:]
            self.width += further
            self.layers = nn.Parameter(torch.zeros(layers))
            # so that vectors of any model begin at the size of the task's own
            self.scale = nn.Parameter(torch.tensor(1 / max(float(vectors.table.std()), 1e-6)))

    def forward(self, batch: Batch) -> Tensor:
        learnt = self.own(batch.words)
        if self.mixed:
            shares = self.layers.softmax(0)
            mixed = self.scale * torch.einsum("btlw,l->btw", batch.vectors, shares)
            learnt = torch.cat([learnt, mixed], -1)
        return self.dropout(learnt)


class Encoder(nn.Module):
    """Two-way LSTM over sentences: (B, T, width), lengths -> (B, T, 2 hidden).

    Each direction has an LSTM of its own, that against the words reads sentences turned round: so
    neither sees what fills them up, and torch can use its fast kernel, which packed sequences do
    not get (half the time on a CPU).
    """

    def __init__(self, width: int, hidden: int, layers: int, dropout: float):
        super().__init__()
        self.width = 2 * hidden
        self.layers = nn.ModuleList(
            nn.ModuleList(nn.LSTM(w, hidden, batch_first=True) for _ in range(2))
            for w in [width, *[self.width] * (layers - 1)]
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, lengths: Tensor) -> Tensor:
        turned = turn(lengths, states.shape[1])[..., None]
        for onward, back in self.layers:
            from_end = back(states.gather(1, turned.expand_as(states)))[0]
            states = torch.cat(
                [onward(states)[0], from_end.gather(1, turned.expand_as(from_end))], 2
            )
            states = self.dropout(states)
        return states


def turn(lengths: Tensor, size: int) -> Tensor:
    """Return places (B, size) that turn sentences round and leave what fills them up where it
    is.
    """
    places = torch.arange(size).expand(len(lengths), size)
    return torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)
