"""Files of sentence vectors (.npz), which `lmtools embed` writes and `lmtools sts` reads."""

import json
import struct
import tokenize
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lmtools.base.atomic import atomic_path
from lmtools.base.errors import UserError
from lmtools.base.files import DAMAGED, cannot

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


def write(stored: SentenceVectors, path) -> None:
    """Write arrays `vectors`, (N, D) for one layer, else (N, layers, D), `texts` (N,), `layers`
    (layers,), and `signature`, JSON.
    """
    vectors = stored.vectors[:, 0] if len(stored.layers) == 1 else stored.vectors
    arrays = {
        "vectors": vectors,
        "texts": np.array(stored.texts, dtype=np.str_),
        "layers": np.array(stored.layers, dtype=np.int64),
    }
    with atomic_path(path) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, **arrays, signature=np.array(json.dumps(dict(stored.signature))))


def read(path) -> SentenceVectors:
    """Read sentence vectors that `write` wrote; UserError for another file."""
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
