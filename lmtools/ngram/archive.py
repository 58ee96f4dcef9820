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
from pathlib import Path
from typing import BinaryIO

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.files import read_errors, unpacking
from lmtools.base.seal import parse_json
from lmtools.ngram.arpa import SCALE
from lmtools.ngram.backoff import BackoffModel, Level, complete_unigrams, ones, pack
from lmtools.ngram.disk import BLOCK, DiskLevel, LevelFile

NAME = "lm.npz"
VERSION = 1
MODEL, VOCABULARY = "model.json", "vocabulary.txt"
MOMENT = (1980, 1, 1, 0, 0, 0)  # of all members, so that bytes repeat
REMEDY = "remove it, so that lm.arpa is read in its place"
FACTS = 1 << 20  # bytes of what model.json says, at most


def row_type(n: int, order: int) -> np.dtype:
    """Return the type of the rows of n-grams of n words in a model of so many at most."""
    names = ["context", "suffix", "word", "prob", "backoff"][: 4 + (n < order)]
    return np.dtype([(name, "<i4") for name in names])


class DigestedStream:
    """A stream whose writes go to a digest too."""

    def __init__(self, stream: BinaryIO):
        self.stream, self.digest = stream, hashlib.sha256()

    def write(self, content: bytes) -> None:
        self.digest.update(content)
        self.stream.write(content)


class Archive:
    """Written along with lm.arpa; `in_order`: n-grams come sorted by context and word."""

    def __init__(self, path, in_order: bool):
        self.in_order, self.sizes = in_order, []
        self.file = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED)

    @contextlib.contextmanager
    def section(self, n: int, sizes: Sequence[int]) -> Iterator[Callable]:
        """Yield a function that adds n-grams of an order: an arpa.Piece and its scaled logs."""
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
        return self.file.open(zipfile.ZipInfo(name, MOMENT), "w", force_zip64=True)

    def add_words(self, vocabulary: Sequence[str]) -> None:
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


class ArchiveReader:
    """The archive at `path` of the lm.arpa with this SHA-256 and `sizes` n-grams an order; `ids`
    gets its new words. UserError where it is damaged, or of another lm.arpa.
    """

    def __init__(self, path: Path, digest: str, sizes: list[int], ids: dict[str, int], *, folder):
        self.path, self.sizes, self.ids, self.folder = path, sizes, ids, folder
        with read_errors(path), unpacking(path):
            self.file = zipfile.ZipFile(path)
        facts = parse_json(self.read_member(MODEL, FACTS), f"{path}: its {MODEL}", REMEDY)
        if facts.get("version") != VERSION:
            raise UserError(f"{path}: another version of lmtools wrote it; {REMEDY}")
        if facts.get("arpa") != digest:
            raise UserError(
                f"{path}: of another lm.arpa than the one beside it; copy both again, or estimate"
                " the model again"
            )
        if facts.get("counts") != sizes:
            raise self.refuse(f"its {MODEL} has other numbers of n-grams than config.yaml")
        self.in_order = facts.get("in_order") is True
        self.place = self.read_words()

    def refuse(self, cause: str) -> UserError:
        return UserError(f"{self.path}: is damaged ({cause}); {REMEDY}")

    def read_member(self, name: str, most: int) -> bytes:
        with unpacking(self.path), self.open_member(name) as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise self.refuse(f"its {name} is too long")
        return content

    def open_member(self, name: str):
        try:
            info = self.file.getinfo(name)
        except KeyError:
            raise self.refuse(f"it has no {name}") from None
        if info.compress_type != zipfile.ZIP_STORED:
            raise self.refuse(f"its {name} is compressed")
        return self.file.open(info)

    def read_words(self) -> np.ndarray:
        """Return the ids of its words, (V,)."""
        content = self.read_member(VOCABULARY, self.path.stat().st_size)
        try:
            words = content.decode().split("\n")[:-1]
        except UnicodeDecodeError:
            words = []
        if len(set(words)) != self.sizes[0] or len(words) != self.sizes[0]:
            raise self.refuse(f"its {VOCABULARY} has not the {self.sizes[0]} words of the unigrams")
        ids = self.ids
        return np.array([ids.setdefault(word, len(ids)) for word in words], dtype=np.int32)

    def read(self) -> BackoffModel:
        model, words = BackoffModel(), self.place
        in_order = self.in_order and bool((np.diff(words) > 0).all())
        for n in range(1, len(self.sizes) + 1):
            if n == 1:
                columns = [self.convert(rows) for rows in self.rows(n)]
                prob, backoff = (np.concatenate([x[i] for x in columns]) for i in (0, 1))
                level = complete_unigrams(Level(words, prob, backoff), len(self.ids))
            else:
                level = self.read_level(n, words, in_order, len(model.levels[-1]))
            model.levels.append(level)
        self.file.close()
        return model

    def read_level(
        self, n: int, words: np.ndarray, in_order: bool, contexts: int
    ) -> Level | DiskLevel:
        """Read an order's n-grams; `place` is where those one shorter are, then where these are."""
        last = n == len(self.sizes)
        columns = ["key", "prob", "suffix", *([] if last else ["backoff"])]
        twice = self.refuse(f"an n-gram of {n} words is there twice")
        dealt = DiskLevel(self.folder, contexts, [*columns, *([] if last else ["place"])], twice)
        ordered, place, at = LevelFile(self.folder, columns), self.place, 0
        for rows in self.rows(n):
            prob, backoff = self.convert(rows)
            suffix = rows["suffix"].copy()
            suffix[suffix >= 0] = place[suffix[suffix >= 0]]
            key = pack(place[rows["context"]], words[rows["word"]])
            (ordered if in_order else dealt).append(
                key=key, prob=prob, backoff=backoff, suffix=suffix,
                place=np.arange(at, at + len(rows)),
            )  # fmt: skip
            at += len(rows)
        if in_order:
            self.place = np.arange(at, dtype=np.int32)
            return ordered.map()
        if last:
            return dealt
        level, self.place = dealt.sort()
        return level

    def convert(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return probabilities and back-off weights as reading lm.arpa gives them."""
        weighed = "backoff" in rows.dtype.names
        backoff = 10.0 ** (rows["backoff"] / SCALE) if weighed else ones(len(rows))
        return 10.0 ** np.minimum(rows["prob"] / SCALE, 0), backoff

    def rows(self, n: int) -> Iterator[np.ndarray]:
        dtype, size = row_type(n, len(self.sizes)), self.sizes[n - 1]
        below, words = self.sizes[n - 2] if n > 1 else 1, self.sizes[0]
        name = f"{n}.npy"
        with unpacking(self.path), self.open_member(name) as stream:
            try:
                np.lib.format.read_magic(stream)
                shape, _, found = np.lib.format.read_array_header_1_0(stream)
            except Exception:  # NumPy parses it as Python, which has an error for every damage
                shape = found = None
            if shape != (size,) or found != dtype:
                raise self.refuse(f"its {name} has another form")
            for start in range(0, size, BLOCK):
                content = stream.read(min(BLOCK, size - start) * dtype.itemsize)
                if len(content) < min(BLOCK, size - start) * dtype.itemsize:
                    raise self.refuse(f"its {name} is cut off")
                rows = np.frombuffer(content, dtype=dtype)
                for column, least, most in (
                    ("context", 0, below), ("suffix", -2, below), ("word", 0, words)
                ):  # fmt: skip
                    if rows[column].min() < least or rows[column].max() >= most:
                        raise self.refuse(f"its {name} names what is not there")
                yield rows
            if stream.read(1):
                raise self.refuse(f"its {name} is too long")
