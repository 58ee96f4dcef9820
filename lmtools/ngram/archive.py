"""lm.npz, the n-grams of a lm.arpa as NumPy arrays, which `mix` and `prune` read in its place.

`N.npy` has a row an n-gram of N words, in the order of lm.arpa: indices of its context and of its
suffix (the n-gram without the last and without the first word) among the rows of N - 1 words, its
last word's place in vocabulary.txt, and logarithms in units of the last decimal of lm.arpa, so that
both files say the same. model.json says of which lm.arpa. Nothing is compressed; each member has a
CRC.
"""

import contextlib
import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

import numpy as np

NAME = "lm.npz"
VERSION = 1
MODEL, VOCABULARY = "model.json", "vocabulary.txt"
MOMENT = (1980, 1, 1, 0, 0, 0)  # of all members, so that bytes repeat


def row_type(n: int, order: int) -> np.dtype:
    """Return the type of the rows of n-grams of n words in a model of so many at most."""
    names = ["context", "suffix", "word", "prob", "backoff"][: 4 + (n < order)]
    return np.dtype([(name, "<i4") for name in names])


class DigestedStream:
    """A stream whose writes go to a digest too."""

    def __init__(self, stream: BinaryIO):
        self.stream, self.digest = stream, hashlib.sha256()

    def write(self, content: bytes) -> None:
        """Write bytes."""
        self.digest.update(content)
        self.stream.write(content)


class Archive:
    """An archive at `path` that is written along with lm.arpa; `in_order`: the n-grams of an order
    come sorted by their contexts' indices, then by their words.
    """

    def __init__(self, path, in_order: bool):
        self.in_order, self.sizes = in_order, []
        self.file = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED)

    @contextlib.contextmanager
    def section(self, n: int, sizes: Sequence[int]) -> Iterator[Callable]:
        """Yield a function that adds the next n-grams of an order: a lmtools.ngram.arpa.Piece and
        its scaled logarithms, (1 or 2, R).
        """
        dtype, self.sizes = row_type(n, len(sizes)), list(sizes)
        with self.open_member(f"{n}.npy") as stream:
            header = {"descr": dtype.descr, "fortran_order": False, "shape": (sizes[n - 1],)}
            np.lib.format.write_array_header_1_0(stream, header)

            def add(piece, logs: np.ndarray) -> None:
                rows = np.empty(len(piece.words), dtype=dtype)
                columns = piece.context, piece.suffix, piece.words[:, -1], *logs
                for name, column in zip(dtype.names, columns, strict=True):
                    rows[name] = column
                stream.write(rows.view(np.uint8))

            yield add

    def abandon(self) -> None:
        """Close the file as it is, after writing failed."""
        stream, self.file.fp = self.file.fp, None  # without which its collector would write on
        with contextlib.suppress(OSError):
            stream.close()

    def open_member(self, name: str):
        """Return the stream of a new member."""
        return self.file.open(zipfile.ZipInfo(name, MOMENT), "w", force_zip64=True)

    def add_words(self, vocabulary: Sequence[str]) -> None:
        """Write the words."""
        with self.open_member(VOCABULARY) as stream:
            stream.write("".join(f"{word}\n" for word in vocabulary).encode())

    def finish(self, digest: str) -> None:
        """Write of which lm.arpa the n-grams are, by its SHA-256, and close."""
        facts = {
            "version": VERSION,
            "arpa": digest,
            "counts": self.sizes,
            "in_order": self.in_order,
        }
        with self.open_member(MODEL) as stream:
            stream.write(json.dumps(facts).encode())
        self.file.close()
