"""Sentences as vectors of their words, weighted by how rare these are (tf-idf): what overlap of
words alone says of similarity.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from lmtools.base.errors import UserError
from lmtools.text import NORMALISERS, Normaliser
from lmtools.text.blocks import read_text
from lmtools.vectors.base import Encoder
from lmtools.version import __version__


class Tfidf(Encoder):
    """An encoder whose sentence vector has, for each word, tf × idf, scaled to length 1; zeros for
    a sentence without words.

    tf: how often the word is in the sentence; idf = ln((1 + n) / (1 + df)) + 1, df of n texts
    having the word (scikit-learn's smooth idf; Spärck Jones 1972). The texts counted are the lines
    of `text_path` (plain, .gz, .xz), else the distinct texts that were prepared. A word is what the
    normaliser leaves between spaces, by default in lower case and without punctuation. The vectors'
    values are those of the words of all prepared texts, sorted; any other word would be 0 in all of
    them. UserError for a text without words.
    """

    layers = (0,)

    def __init__(self, text_path=None, normaliser: Normaliser | None = None):
        self.path, self.normaliser = text_path, normaliser or NORMALISERS["librispeech"]
        # texts counted, and how many of them have each word
        self.total, self.frequency = 0, Counter()
        self.seen: set[str] = set()  # texts prepared
        self.column: dict[str, int] = {}
        self.idf = np.zeros(0)
        if text_path is not None:
            self.count(line for _, line in read_text(text_path))
            if not self.frequency:
                raise UserError(f"{text_path}: no words to count; give a text, a sentence a line")

    @property
    def width(self) -> int:
        """The number of values of a vector: distinct words prepared so far."""
        return len(self.column)

    @property
    def signature(self) -> dict[str, str]:
        """Return the signature of all that the vectors depend on: the words that have a value, the
        number of texts, and how many have each word.
        """
        counts = [self.total, [(word, self.frequency[word]) for word in self.column]]
        model = hashlib.sha256(json.dumps(counts).encode()).hexdigest()
        signature = {"lm": "tfidf", "model": model[:16]}
        signature |= {"normaliser": self.normaliser.hash[:16], "pool": "mean"}
        return signature | {"version": __version__}

    def prepare(self, texts: Iterable[str]) -> list[tuple[str, ...]]:
        """Return the words of each text, sorted. Texts that are new change the width and, without
        `text_path`, the idf of all.
        """
        texts = list(texts)
        split = [tuple(sorted(self.normaliser(text).split())) for text in texts]
        if self.path is None:
            self.count(text for text in dict.fromkeys(texts) if text not in self.seen)
        self.seen.update(texts)
        words = sorted(self.column.keys() | {word for words in split for word in words})
        self.column = {word: i for i, word in enumerate(words)}
        having = np.array([self.frequency[word] for word in self.column], dtype=np.float64)
        self.idf = np.log((1 + self.total) / (1 + having)) + 1
        return split

    def count(self, texts: Iterable[str]) -> None:
        """Add texts to those that idf is counted on."""
        for text in texts:
            self.total += 1
            self.frequency.update(set(self.normaliser(text).split()))

    def vectors(self, sentences: Sequence[Sequence[str]]) -> np.ndarray:
        """Return vectors of length 1 or 0, float32 (B, 1, width), of prepared sentences."""
        weights = np.zeros((len(sentences), self.width))
        for row, words in zip(weights, sentences, strict=True):
            np.add.at(row, [self.column[word] for word in words], 1.0)
        weights *= self.idf
        lengths = np.linalg.norm(weights, axis=1, keepdims=True)
        np.divide(weights, lengths, out=weights, where=lengths > 0)
        return weights.astype(np.float32)[:, None]
