"""Binarised corpora on the disk, and their reading.

A file holds the header (two lines), the subword model's content, offsets and ids. A corpus in
shards is an index: a header with the names of such files, which lie in `NAME.shards` beside it. A
shard's name is that of its content, so that writing the corpus anew never touches a shard of the
old one.

A corpus of pairs holds each pair as one sequence of ids: those of the source sentence, EOS, those
of the target sentence. No text has EOS in it, so that the one there is says where the target
begins.
"""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from lmtools.base.config import as_tree, build
from lmtools.base.errors import UserError
from lmtools.base.files import cannot, refuse_pipe, sha256
from lmtools.base.seal import SEAL, Damaged, add_seal, check_seal, digest, say_unchecked
from lmtools.text import Normaliser
from lmtools.text.subword import EOS, VOCABULARIES, Subword, assemble

MAGIC = b"lmtools-corpus-1\n"
INDEX = b"lmtools-corpus-index-1\n"
ALIGNMENT = 64  # bytes
OFFSET = np.dtype("<i8")
REMEDY = "write it again with lmtools corpus"
SHARD = re.compile("[0-9a-f]{32}[.]bin")


@dataclass(frozen=True)
class Header:
    """Header of a corpus."""

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
    model: int  # bytes of the subword model's content, which follows; 0 in an index
    version: str
    sources: list[str]  # empty in a shard
    # SHA-256 of model, offsets and ids, of an index that of its shards' contents; None in files of
    # older versions
    content: str | None = None
    pairs: bool = False  # of source and target sentences

    magic = MAGIC

    def as_json(self) -> dict:
        """Return the header as JSON; `pairs` only where it is true, as fingerprints expect."""
        tree = asdict(self) | {"normaliser": as_tree(self.normaliser)}
        return tree if self.pairs else {name: tree[name] for name in tree if name != "pairs"}

    def identity(self) -> str:
        """Return a SHA-256 of what a training depends on: not of version and places."""
        places = ("version", "sources", "shards")
        return digest({name: value for name, value in self.as_json().items() if name not in places})

    def dumps(self) -> bytes:
        """Return magic line and sealed JSON line, padded with spaces to ALIGNMENT bytes."""
        text = self.magic + json.dumps(add_seal(self.as_json())).encode()
        return text + b" " * padding(len(text) + 1) + b"\n"


@dataclass(frozen=True)
class Index(Header):
    """Header of a corpus in shards: the sums, and the shards' names, in order."""

    shards: list[str] = field(default_factory=list)

    magic = INDEX


def padding(length: int) -> int:
    """Return the bytes that `length` lacks to a multiple of ALIGNMENT."""
    return -length % ALIGNMENT


def shard_directory(path) -> Path:
    """Return the directory of the shards of the corpus `path`."""
    return Path(f"{path}.shards")


@dataclass(frozen=True, eq=False)
class Corpus(ABC):
    """Sentences as ids without BOS and EOS, in one file or in shards.

    `shards` are its files, in order: at least one, none without a sentence; `subword` is the model
    that made the ids, from the corpus itself.
    """

    path: Path
    header: Header

    @staticmethod
    def open(path) -> "CorpusFile | ShardedCorpus":
        """Open the corpus in `path`, memory-mapped; UserError if that is no corpus or not whole."""
        header, start = read_header(path)
        if isinstance(header, Index):
            return ShardedCorpus.of(Path(path), header)
        return CorpusFile.of(Path(path), header, start)

    @abstractmethod
    def digest(self) -> str:
        """Return a SHA-256 of sentences and vocabulary, read in whole; Damaged if they changed."""

    def __len__(self) -> int:
        return self.header.sentences

    @property
    def tokens(self) -> int:
        return self.header.tokens

    @property
    def vocabulary_hash(self) -> str:
        return self.header.vocabulary

    def check(self, subword: Subword) -> "Corpus":
        """Return this corpus, if `subword` made its ids; else UserError."""
        if self.vocabulary_hash != subword.hash:
            raise UserError(
                f"{self.path}: made with another {self.header.scheme} model of {self.header.size}"
                f" pieces ({self.vocabulary_hash[:12]}, not {subword.hash[:12]}); make it again"
                " with lmtools corpus"
            )
        return self

    def check_pairs(self, wanted: bool, reader: str) -> "Corpus":
        """Return this corpus if it holds pairs where they are `wanted`, else none; or UserError."""
        if self.header.pairs != wanted:
            kinds = ("plain sentences", "pairs of source and target")
            raise UserError(
                f"{self.path}: holds {kinds[not wanted]}, {reader} reads {kinds[wanted]}; make one"
                f" with lmtools corpus {'and' if wanted else 'without'} --source"
            )
        return self


@dataclass(frozen=True, eq=False)
class CorpusFile(Corpus):
    """`corpus[i]` is a read-only array (tokens,) in the file's dtype.

    offsets (sentences + 1,): sentence i is ids[offsets[i]:offsets[i + 1]]; ids (tokens,). The file
    holds the subword model too, so that whoever trains on it needs no second path: model (bytes,)
    is its content.
    """

    model: np.ndarray
    offsets: np.ndarray
    ids: np.ndarray

    @classmethod
    def of(cls, path: Path, header: Header, start: int) -> "CorpusFile":
        first = start + header.model + padding(header.model)
        middle = first + OFFSET.itemsize * (header.sentences + 1)
        data = np.memmap(path, np.uint8, "r").view(np.ndarray)
        if len(data) != middle + np.dtype(header.dtype).itemsize * header.tokens:
            raise Damaged(f"{path}: the file is torn ({len(data)} bytes); {REMEDY}")
        model, offsets = data[start : start + header.model], data[first:middle].view(OFFSET)
        ids = data[middle:].view(header.dtype)
        return cls(path, header, model=model, offsets=offsets, ids=ids)

    @property
    def shards(self) -> "tuple[CorpusFile, ...]":
        return (self,)

    def __getitem__(self, index: int) -> np.ndarray:
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def batch(self, indices: Iterable[int]) -> list[np.ndarray]:
        """Return the sentences at `indices`, in their order."""
        return [self[index] for index in indices]

    @cached_property
    def lengths(self) -> np.ndarray:
        """Return (sentences,) int64: the number of ids of each sentence."""
        return np.diff(self.offsets)

    @cached_property
    def subword(self) -> Subword:
        parts = VOCABULARIES[self.header.scheme], self.model.tobytes(), self.header.normaliser
        return assemble(*parts, expected=self.vocabulary_hash, source=self.path)

    @cached_property
    def source_lengths(self) -> np.ndarray:
        """Return (sentences,) int64: ids of each pair's source; Damaged where one is no pair."""
        result = np.zeros(len(self), dtype=np.int64)
        for first in range(0, len(self), 1 << 16):
            offsets = np.asarray(self.offsets[first : first + (1 << 16) + 1])
            ends = np.flatnonzero(self.ids[offsets[0] : offsets[-1]] == EOS) + offsets[0]
            if (
                len(ends) != len(offsets) - 1
                or not ((offsets[:-1] <= ends) & (ends < offsets[1:])).all()
            ):
                raise Damaged(f"{self.path}: damaged (holds sequences that are no pairs); {REMEDY}")
            result[first : first + len(ends)] = ends - offsets[:-1]
        return result

    def digest(self) -> str:
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
        if content_digest(*(hashlib.sha256(part) for part in parts)) != self.header.content:
            raise Damaged(f"{self.path}: damaged (its content is not what was written); {REMEDY}")
        return self.header.identity()


@dataclass(frozen=True, eq=False)
class ShardedCorpus(Corpus):
    """A corpus whose sentences are those of its shards, one after the other."""

    shards: tuple[CorpusFile, ...]

    @classmethod
    def of(cls, path: Path, header: Index) -> "ShardedCorpus":
        if not header.shards or not all(map(SHARD.fullmatch, header.shards)):
            raise Damaged(f"{path}: names no shards; {REMEDY}")
        shards = tuple(Corpus.open(shard_directory(path) / name) for name in header.shards)
        expected = index_of([shard.header for shard in shards], header.sources, header.empty)
        if expected != header:
            raise Damaged(f"{path}: its shards are not those that were written; {REMEDY}")
        return cls(path, header, shards)

    @property
    def subword(self) -> Subword:
        return self.shards[0].subword

    def digest(self) -> str:
        for shard in self.shards:
            shard.digest()
        return self.header.identity()


def name_shard(header: Header) -> str:
    """Return the name of the shard with this header, which says what its content is."""
    return f"{digest(header.as_json())[:32]}.bin"


def index_of(shards: list[Header], sources: list[str], empty: int) -> Index:
    """Return the index of shards with these headers; `empty`: lines skipped in all."""
    fields = asdict(shards[0]) | {
        name: sum(getattr(shard, name) for shard in shards)
        for name in ("sentences", "tokens", "unknown")
    }
    contents = "".join(shard.content or "" for shard in shards)
    fields |= {
        "empty": empty,
        "normaliser": shards[0].normaliser,
        "longest": max(shard.longest for shard in shards),
        "model": 0,
        "sources": sources,
        "content": hashlib.sha256(contents.encode()).hexdigest(),
        "shards": list(map(name_shard, shards)),
    }
    return Index(**fields)


def read_header(path) -> tuple[Header, int]:
    """Read the header of a corpus file or of an index, and the number of bytes it takes."""
    refuse_pipe(path)
    try:
        with open(path, "rb") as stream:
            kinds = {kind.magic: kind for kind in (Header, Index)}
            if not (kind := kinds.get(magic := stream.readline(len(INDEX)))):
                raise UserError(f"{path}:1: not a binarised corpus; make one with lmtools corpus")
            line = stream.readline()
    except OSError as error:
        raise cannot("read", path, error) from None
    try:
        tree = json.loads(line)
        header = build(kind, check_seal(tree, path, REMEDY, warn=False), path)
        np.dtype(header.dtype)
        if (header.content is None) != (SEAL not in tree):
            raise ValueError
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        raise Damaged(f"{path}:2: the file is torn in its header; {REMEDY}") from None
    return header, len(magic) + len(line)


def content_digest(model, offsets, ids) -> str:
    """Return the hexadecimal SHA-256 of a corpus's content out of the digests of its parts."""
    return hashlib.sha256(b"".join(part.digest() for part in (model, offsets, ids))).hexdigest()
