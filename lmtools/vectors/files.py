"""Files of vectors. Of sentences: NumPy's .npz, which `lmtools embed` writes and `lmtools sts`
reads. Of words: .npz, which is held in memory until it is whole, and HDF5 as ELMo's own tools write
it, line by line.
"""

import contextlib
import itertools
import json
import struct
import tokenize
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lmtools.base.atomic import atomic_path
from lmtools.base.errors import UserError, explain_missing
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


Add = Callable[["Embedded"], None]


@contextlib.contextmanager
def write_npz(path, layers: Sequence[int], width: int) -> Iterator[Add]:
    """Write arrays `vectors` (words in all, layers, width), float32; `offsets` (lines + 1,), where
    each line's words begin; `words`; `layers`.
    """
    lines: list[Embedded] = []
    yield lines.append
    offsets = np.cumsum([0, *(len(line.words) for line in lines)], dtype=np.int64)
    vectors = np.empty((offsets[-1], len(layers), width), dtype=np.float32)
    for begin, end, line in zip(offsets, offsets[1:], lines, strict=False):
        vectors[begin:end] = line.vectors
    words = np.array([word for line in lines for word in line.words], dtype=np.str_)
    with atomic_path(path) as temporary, open(temporary, "wb") as stream:
        np.savez(
            stream,
            vectors=vectors,
            offsets=offsets,
            words=words,
            layers=np.array(layers, dtype=np.int64),
        )


@contextlib.contextmanager
def write_hdf5(path, layers: Sequence[int], width: int) -> Iterator[Add]:
    """Write one dataset a line, named 0, 1 ..., float32 (layers, words, width), and
    `sentence_to_index`, JSON from lines to these names.

    Of equal lines it names the last, as AllenNLP's does. The numbers of the layers are the file's
    attribute `layers`.
    """
    h5py = needed_h5py(path)
    index: dict[str, str] = {}
    with atomic_path(path) as temporary, h5py.File(temporary, "w") as stream:
        names = map(str, itertools.count())

        def add(line: "Embedded") -> None:
            index[line.text.strip()] = name = next(names)
            stream.create_dataset(name, data=line.vectors.transpose(1, 0, 2))

        yield add
        stream.attrs["layers"] = list(layers)
        stream.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())[0] = json.dumps(
            index
        )


def needed_h5py(path):
    try:
        import h5py
    except ImportError as error:
        raise explain_missing(error, f"{path}: HDF5", "write .npz") from None
    return h5py


VECTOR_FILES = {".npz": write_npz, ".h5": write_hdf5, ".hdf5": write_hdf5}


def open_vectors(path, layers: Sequence[int], width: int) -> contextlib.AbstractContextManager[Add]:
    """Return a context with a function that writes the next line; the file is there when it ends
    well.
    """
    return VECTOR_FILES[check_suffix(path)](path, layers, width)


def check_suffix(path) -> str:
    """Return the suffix of a path that can be written; UserError, before anything is computed, for
    one that cannot.
    """
    suffix = Path(path).suffix
    if suffix not in VECTOR_FILES:
        raise UserError(
            f"{path}: not a kind of file for vectors; give a name that ends in one of"
            f" {', '.join(VECTOR_FILES)}"
        )
    if VECTOR_FILES[suffix] is write_hdf5:
        needed_h5py(path)
    return suffix
