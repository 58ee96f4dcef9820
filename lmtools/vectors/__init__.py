"""Vectors of words in their context, computed by a language model (`words`) and kept in files
(`vector_files`).
"""

from lmtools.vectors.vector_files import VECTOR_FILES, open_vectors
from lmtools.vectors.words import Embedded, load_word_vectors, word_vectors

__all__ = ["VECTOR_FILES", "Embedded", "load_word_vectors", "open_vectors", "word_vectors"]
