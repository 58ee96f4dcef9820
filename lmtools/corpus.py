"""Binarised text: one file of token ids with sentence offsets, read through a memory map."""

import hashlib
import itertools
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lmtools import __version__
from lmtools.atomic import atomic_path
from lmtools.config import build
from lmtools.errors import UserError
from lmtools.files import cannot, sha256
from lmtools.seal import SEAL, Damaged, add_seal, check_seal, digest, say_unchecked
from lmtools.subword import UNK, VOCABULARIES, Subword, assemble
from lmtools.text import Normaliser
from lmtools.text.blocks import TextBlock, read_blocks
from lmtools.workers import map_ordered

MAGIC = b"lmtools-corpus-1\n"
ALIGNMENT = 64  # bytes
OFFSET = np.dtype("<i8")
REMEDY = "write it again with lmtools corpus"


@dataclass(frozen=True)
class Header:
    """What a corpus file says of itself."""

    dtype: str  # of the ids
    sentences: int
    tokens: int
    unknown: int  # tokens
    empty: int  # lines skipped
    longest: int  # tokens of a sentence
    vocabulary: str  # the subword model's hash
    scheme: str
    size: int  # of the vocabulary
    normaliser: Normaliser
    model: int  # bytes of the subword model's content, which follows
    version: str
    sources: list[str]
    content: str | None = None  # SHA-256 of model, offsets and ids; None in files of older versions

    def dumps(self) -> bytes:
        """Magic line and JSON line with its seal, padded with spaces to a multiple of ALIGNMENT
        bytes.
        """
        text = MAGIC + json.dumps(add_seal(asdict(self))).encode()
        return text + b" " * padding(len(text) + 1) + b"\n"


def padding(length: int) -> int:
    """The bytes that `length` lacks to a multiple of ALIGNMENT."""
    return -length % ALIGNMENT


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentences as ids without BOS and EOS: `corpus[i]` is a read-only array (tokens,) in the
    file's dtype.

    offsets (sentences + 1,): sentence i is ids[offsets[i]:offsets[i + 1]]; ids (tokens,). The file
    holds the subword model too, so that whoever trains on it needs no second path: model (bytes,)
    is its content.
    """

    path: Path
    header: Header
    model: np.ndarray
    offsets: np.ndarray
    ids: np.ndarray

    @classmethod
    def open(cls, path) -> "Corpus":
        """The corpus in `path`, memory-mapped; UserError if the file is no corpus or not whole."""
        header, start = read_header(path)
        first = start + header.model + padding(header.model)
        middle = first + OFFSET.itemsize * (header.sentences + 1)
        data = np.memmap(path, np.uint8, "r").view(np.ndarray)
        if len(data) != middle + np.dtype(header.dtype).itemsize * header.tokens:
            raise Damaged(f"{path}: the file is torn ({len(data)} bytes); {REMEDY}")
        model, offsets = data[start : start + header.model], data[first:middle].view(OFFSET)
        return cls(Path(path), header, model, offsets, data[middle:].view(header.dtype))

    def __len__(self) -> int:
        return self.header.sentences

    def __getitem__(self, index: int) -> np.ndarray:
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def batch(self, indices: Iterable[int]) -> list[np.ndarray]:
        """The sentences at `indices`, in their order."""
        return [self[index] for index in indices]

    @cached_property
    def lengths(self) -> np.ndarray:
        """(sentences,) int64: the number of ids of each sentence."""
        return np.diff(self.offsets)

    @property
    def tokens(self) -> int:
        """The number of ids in all."""
        return self.header.tokens

    @property
    def vocabulary_hash(self) -> str:
        """The hash of the subword model that made the ids."""
        return self.header.vocabulary

    @cached_property
    def subword(self) -> Subword:
        """The subword model that made the ids, from the file itself."""
        kind, content = VOCABULARIES[self.header.scheme], self.model.tobytes()
        return assemble(kind, content, self.header.normaliser, self.vocabulary_hash, self.path)

    def digest(self) -> str:
        """Hexadecimal SHA-256 that stands for all that the file says, read in whole; Damaged where
        it is not as it was written.
        """
        if self.header.content is None:  # of an older version
            say_unchecked(str(self.path))
            ends, highest = self.offsets[[0, -1]].tolist(), int(self.ids.max(initial=0))
            ordered = ends == [0, self.tokens] and self.lengths.min(initial=0) >= 0
            if not ordered or highest >= self.header.size:
                raise Damaged(
                    f"{self.path}: damaged (its offsets or ids lie outside the file or the"
                    f" vocabulary); {REMEDY}"
                )
            return sha256(self.path)
        parts = (self.model, self.offsets, self.ids)
        if content_digest(*map(hashlib.sha256, parts)) != self.header.content:
            raise Damaged(f"{self.path}: damaged (its content is not what was written); {REMEDY}")
        return digest(asdict(self.header))

    def check(self, subword: Subword) -> "Corpus":
        """This corpus, if `subword` made its ids; else UserError."""
        if self.vocabulary_hash != subword.hash:
            raise UserError(
                f"{self.path}: made with another {self.header.scheme} model of {self.header.size}"
                f" pieces ({self.vocabulary_hash[:12]}, not {subword.hash[:12]}); make it again"
                " with lmtools corpus"
            )
        return self


def read_header(path) -> tuple[Header, int]:
    """The header of a corpus file and the number of bytes it takes."""
    try:
        with open(path, "rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                raise UserError(f"{path}:1: not a binarised corpus; make one with lmtools corpus")
            line = stream.readline()
    except OSError as error:
        raise cannot("read", path, error) from None
    try:
        tree = json.loads(line)
        header = build(Header, check_seal(tree, path, REMEDY, warn=False), path)
        np.dtype(header.dtype)
        if (header.content is None) != (SEAL not in tree):
            raise ValueError
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        raise Damaged(f"{path}:2: the file is torn in its header; {REMEDY}") from None
    return header, len(MAGIC) + len(line)


def content_digest(model, offsets, ids) -> str:
    """Hexadecimal SHA-256 of a corpus's content out of the digests of its parts."""
    return hashlib.sha256(b"".join(part.digest() for part in (model, offsets, ids))).hexdigest()


class Hashed:
    """A file for writing that knows the SHA-256 of what was written."""

    def __init__(self, stream):
        self.stream, self.sha256 = stream, hashlib.sha256()

    def write(self, array: np.ndarray) -> None:
        """Append the bytes of an array."""
        self.sha256.update(array)
        self.stream.write(array)


class Encoded(NamedTuple):
    """The ids (tokens,) of a block of text, the length (sentences,) of each sentence that is not
    empty, and the number of empty ones.
    """

    ids: np.ndarray
    lengths: np.ndarray
    empty: int


def binarise(sources: Sequence, subword: Subword, out, kaldi=False, nj: int = 1) -> Corpus:
    """The corpus written to `out` from texts of one sentence a line (with `kaldi`: after an
    utterance id), in bounded memory.

    Lines that are empty after normalisation are skipped and counted. The ids go to one unnamed
    file, the offsets to a second, and both behind the header when their numbers are known. `nj`
    processes encode; the file is the same for any number.
    """
    dtype = np.dtype("<u2" if subword.size <= 1 << 16 else "<u4")
    total, longest = Counter(), 0
    with atomic_path(out) as whole, scratch(whole) as id_file, scratch(whole) as offset_file:
        ids, offsets = Hashed(id_file), Hashed(offset_file)
        offsets.write(np.zeros(1, OFFSET))
        work = partial(encode, subword=subword, dtype=dtype, kaldi=kaldi)
        for made in map_ordered(work, read_blocks(sources), nj):
            ids.write(made.ids)
            offsets.write((total["tokens"] + np.cumsum(made.lengths)).astype(OFFSET))
            unknown = int(np.count_nonzero(made.ids == UNK))
            total.update(
                sentences=len(made.lengths), tokens=len(made.ids), unknown=unknown, empty=made.empty
            )
            longest = max(longest, int(made.lengths.max(initial=0)))
        if not total["sentences"]:
            raise UserError(
                f"{sources[0]}: no sentence in the text; give text with one sentence a line"
            )
        model = subword.content
        header = Header(
            dtype=dtype.str, **total, longest=longest,
            vocabulary=subword.hash, scheme=subword.scheme, size=subword.size,
            normaliser=subword.normaliser, model=len(model), version=__version__,
            sources=[str(source) for source in sources],
            content=content_digest(hashlib.sha256(model), offsets.sha256, ids.sha256),
        )  # fmt: skip
        head = header.dumps() + model + bytes(padding(len(model)))
        join(whole, head, offset_file, id_file)
    return Corpus.open(out)


def encode(block: TextBlock, subword: Subword, dtype: np.dtype, kaldi: bool) -> Encoded:
    """The sentences of a block of text, with `kaldi` without the first word of each line."""
    texts = block.lines()
    if kaldi:
        texts = [" ".join(text.split(maxsplit=1)[1:]) for text in texts]
    sentences = [sentence for sentence in subword.encode_batch(texts) if sentence]
    lengths = np.fromiter(map(len, sentences), OFFSET, len(sentences))
    ids = np.fromiter(itertools.chain.from_iterable(sentences), dtype, lengths.sum())
    return Encoded(ids, lengths, len(texts) - len(sentences))


def scratch(beside: Path):
    """An unnamed file on the disk of `beside`: it vanishes with the process, however that ends."""
    return tempfile.TemporaryFile(dir=beside.parent)


def join(path: Path, head: bytes, offsets, ids) -> None:
    """Write head, offsets and ids to `path`."""
    with open(path, "wb") as stream:
        stream.write(head)
        for part in (offsets, ids):
            part.seek(0)
            shutil.copyfileobj(part, stream, 1 << 20)
