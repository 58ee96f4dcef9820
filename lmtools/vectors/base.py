"""Interface of encoders: texts in, sentence vectors out."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np


class Encoder(ABC):
    """Encoder as `encode` uses it. A sentence is whatever `prepare` made of a text: hashable, equal
    for equal vectors.
    """

    signature: dict[str, str]
    layers: tuple[int, ...]
    rows: int | None = None  # model rows of a batch; None: it computes each sentence by itself
    ragged = False  # sentences of any costs go through together without padding

    @abstractmethod
    def prepare(self, texts: Sequence[str]) -> list[tuple]:
        """Return one sentence a text: normalised and segmented."""

    def cost(self, sentence: tuple) -> int:
        """Return the number of rows that a sentence adds to a batch, by default its parts, at least
        1; sentences of equal cost are computed in equal shapes.
        """
        return max(1, len(sentence))

    @abstractmethod
    def vectors(self, sentences: Sequence[tuple]) -> np.ndarray:
        """Return sentence vectors, float32 (B, layers, D); narrower layers are filled up with
        zeros, which changes no cosine.
        """

    def describe_missing(self) -> str:
        """Return what words of the prepared texts have no vector, for people; empty: all have."""
        return ""
