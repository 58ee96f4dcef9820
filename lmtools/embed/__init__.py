"""Vectors of words in their context, computed by a language model (`words`) and kept in files
(`stores`).
"""

from lmtools.embed.stores import STORES, writing
from lmtools.embed.words import Embedded, WordVectors, word_vectors

__all__ = ["STORES", "Embedded", "WordVectors", "word_vectors", "writing"]
