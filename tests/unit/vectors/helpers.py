"""What tests of vectors share."""

from collections.abc import Iterator
from dataclasses import replace

from scoring import CPU

from lmtools.vectors.words import Embedded, word_vectors


def embed_words(lm, texts, layers=None, **options) -> Iterator[Embedded]:
    """Yield the words of texts and their vectors, by options of the computation by name."""
    return word_vectors(lm, texts, layers, replace(CPU, **options))
