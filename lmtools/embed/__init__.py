"""Vectors of words in their context, computed by a language model (`words`) and kept in files
(`vector_files`).
"""

from lmtools.embed.vector_files import VECTOR_FILES, open_vectors
from lmtools.embed.words import Embedded, WordVectors, word_vectors

__all__ = ["VECTOR_FILES", "Embedded", "WordVectors", "open_vectors", "word_vectors"]
