"""Files of vectors, NumPy's .npz: of sentences, which `lmtools embed` writes and `lmtools sts`
reads, and of words.
"""

import json
import struct
import tokenize
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmtools.base.atomic import atomic_path
from lmtools.base.errors import UserError
from lmtools.base.files import DAMAGED, cannot

if TYPE_CHECKING:
    from lmtools.vectors.words import Embedded

# What NumPy and zipfile raise for a file that is another one or damaged (RuntimeError: a bit says
# that it is encrypted; the last two: NumPy parses a header as Python).
NO_VECTORS = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RuntimeError,
    MemoryError,
    struct.error,
    zipfile.BadZipFile,
    tokenize.TokenError,
    SyntaxError,
)


@dataclass(frozen=True)
class SentenceVectors:
    """Vectors (N, layers, D), float32, of N texts; the layers' numbers; the maker's signature."""

    texts: Sequence[str]
    vectors: np.ndarray
    layers: tuple[int, ...]
    signature: Mapping[str, str]


def write_sentences(stored: SentenceVectors, path) -> None:
    """Write arrays `vectors` (N, [layers,] D), `texts` (N,), `layers`, `signature` (JSON)."""
    vectors = stored.vectors[:, 0] if len(stored.layers) == 1 else stored.vectors
    arrays = {
        "vectors": vectors,
        "texts": np.array(stored.texts, dtype=np.str_),
        "layers": np.array(stored.layers, dtype=np.int64),
    }
    with atomic_path(path) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, **arrays, signature=np.array(json.dumps(dict(stored.signature))))


def read_sentences(path) -> SentenceVectors:
    """Read sentence vectors that `write_sentences` wrote; UserError for another file."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            vectors, layers = arrays["vectors"], tuple(arrays["layers"].tolist())
            texts, signature = arrays["texts"].tolist(), json.loads(str(arrays["signature"]))
    except OSError as error:
        raise cannot("read", path, error) from None
    except (*NO_VECTORS, *DAMAGED) as error:
        cause = " ".join(str(error).split())[:100]
        raise UserError(
            f"{path}: no sentence vectors ({cause}); write them with lmtools embed --pool mean"
        ) from None
    vectors = vectors[:, None] if vectors.ndim == 2 else vectors
    if vectors.ndim != 3 or vectors.shape[:2] != (len(texts), len(layers)):
        raise UserError(
            f"{path}: {vectors.shape} vectors of {len(texts)} texts and {len(layers)} layers; write"
            " it again"
        )
    return SentenceVectors(texts, vectors, layers, signature)


def write_words(path, layers: Sequence[int], width: int, lines: Iterable["Embedded"]) -> int:
    """Write `vectors` (words, layers, width), `offsets` (lines + 1,), `words`, `layers`; count."""
    lines = list(lines)
    offsets = np.cumsum([0, *(len(line.words) for line in lines)], dtype=np.int64)
    vectors = np.empty((offsets[-1], len(layers), width), dtype=np.float32)
    for begin, end, line in zip(offsets, offsets[1:], lines, strict=False):
        vectors[begin:end] = line.vectors
    words = np.array([word for line in lines for word in line.words], dtype=np.str_)
    arrays = {"offsets": offsets, "words": words, "layers": np.array(layers, dtype=np.int64)}
    with atomic_path(path) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, vectors=vectors, **arrays)
    return len(words)
