"""Writing binarised corpora, in bounded memory, by any number of processes or tasks of a cluster.

One file: processes encode blocks of text, and this one writes. Shards: each is written by whoever
encodes it; only the index is written here.
"""

import hashlib
import itertools
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lmtools.base.atomic import atomic_path, hold_lock
from lmtools.base.computing import WHOLE, Shard
from lmtools.base.errors import UserError
from lmtools.base.log import BYTES, track
from lmtools.base.workers import map_ordered
from lmtools.text.blocks import (
    PairBlock,
    TextBlock,
    TextPart,
    count_bytes,
    cut_texts,
    read_pairs,
    total_bytes,
)
from lmtools.text.corpus.reading import (
    OFFSET,
    SHARD,
    Corpus,
    CorpusFile,
    Header,
    content_digest,
    index_of,
    name_shard,
    padding,
    read_header,
    shard_directory,
)
from lmtools.text.subword import EOS, UNK, Subword
from lmtools.version import __version__

PART = ".part"  # a shard whose content, and so whose name, is not known yet


class NoSentence(UserError):
    """There is nothing in a text but `empty` lines."""

    def __init__(self, path, empty: int):
        super().__init__(f"{path}: no sentence in the text; give text with one sentence a line")
        self.empty = empty


class Hashed:
    """A file for writing that knows the SHA-256 of what was written."""

    def __init__(self, stream):
        self.stream, self.sha256 = stream, hashlib.sha256()

    def write(self, array: np.ndarray) -> None:
        self.sha256.update(array)
        self.stream.write(array)


class Encoded(NamedTuple):
    """Ids (tokens,) of a block, lengths (sentences,) of filled sentences, number of empty ones."""

    ids: np.ndarray
    lengths: np.ndarray
    empty: int


def binarise(
    sources: Sequence, subword: Subword, out, kaldi=False, nj: int = 1, *, shard: Shard = WHOLE
) -> Corpus:
    """Write the corpus of texts of one sentence a line (with `kaldi`: after an utterance id) to
    `out`, in bounded memory, by `nj` processes, equal bytes. Empty lines are skipped and counted.
    """
    work = partial(encode, subword=subword, kaldi=kaldi)
    parts = shard.share(partial(cut_texts, sources))
    parts = track(parts, f"corpus {out}", total_bytes(sources), BYTES, size=count_bytes)
    encoded = map_ordered(work, parts, nj)
    write_corpus(encoded, subword, out, list(map(str, sources)))
    return Corpus.open(out)


def binarise_pairs(
    texts: Sequence,
    sources: Sequence,
    subword: Subword,
    out,
    kaldi=False,
    nj: int = 1,
    *,
    shard: Shard = WHOLE,
) -> Corpus:
    """Write the corpus of pairs to `out`: lines of `texts`, targets, and of `sources`, segmented by
    `subword` (`kaldi`: behind ids). Two empty lines are counted; UserError for one alone, and texts
    that are not aligned. `nj` encode; `shard`: this part.
    """
    work = partial(encode_pairs, subword=subword, kaldi=kaldi)
    pairs = shard.share(partial(read_pairs, texts, sources))
    pairs = track(pairs, f"corpus {out}", total_bytes(texts), BYTES, size=count_bytes)
    encoded = map_ordered(work, pairs, nj)
    write_corpus(encoded, subword, out, [*map(str, texts), *map(str, sources)], pairs=True)
    return Corpus.open(out)


def binarise_shards(
    sources: Sequence, subword: Subword, out, size: int, kaldi=False, nj: int = 1
) -> Corpus:
    """Write the corpus in shards of about `size` bytes of text (compressed text: one) by `nj`
    processes, whose number changes no file. UserError for standard input and pipes.
    """
    with hold_lock(open_folder(out)):
        written = write_shards(sources, subword, out, size, kaldi=kaldi, nj=nj)
        write_index(written, out, list(map(str, sources)))
    return Corpus.open(out)


def open_folder(out) -> Path:
    """Return the directory of the shards of `out`, which is made; UserError for a link."""
    folder = shard_directory(out)
    if folder.is_symlink():
        raise UserError(f"{folder}: a link stands where the shards belong; remove it")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_shards(
    sources: Sequence, subword: Subword, out, size: int, kaldi=False, nj: int = 1, *, shard=WHOLE
) -> list[tuple[str | None, int]]:
    """Write a corpus' shards, or the part `shard`; return names (None: empty) and skipped lines."""
    work = partial(write_shard, folder=open_folder(out), subword=subword, kaldi=kaldi)
    parts = list(shard.share(lambda: enumerate(cut_texts(sources, size, whole=True))))
    written = map_ordered(work, parts, nj)
    return list(track(written, f"corpus {out}", len(parts), "shard"))


def write_index(written: Sequence[tuple[str | None, int]], out, sources: list[str]) -> None:
    """Write the index of shards as `write_shards` gives them, and remove those of earlier ones."""
    folder, empty = shard_directory(out), sum(skipped for _, skipped in written)
    headers = [read_header(folder / name)[0] for name, _ in written if name]
    if not headers:
        raise NoSentence(sources[0], empty)
    index = index_of(headers, sources, empty)
    with atomic_path(out) as path:
        path.write_bytes(index.dumps())
    part = re.compile(rf"{SHARD.pattern}|[0-9]+{re.escape(PART)}")  # of any corpus
    for name in set(filter(part.fullmatch, os.listdir(folder))) - {*index.shards}:
        (folder / name).unlink()


def join_corpora(paths: Sequence, out, sources: list[str], empty: int) -> Corpus:
    """Write corpora as one; `empty`: lines skipped beside those that they count."""
    corpora = [Corpus.open(path).shards[0] for path in paths]
    if not corpora:
        raise NoSentence(sources[0], empty)
    for corpus in corpora:
        corpus.check(corpora[0].subword).check_pairs(corpora[0].header.pairs, "this join")
    blocks = itertools.chain(
        [Encoded(corpora[0].ids[:0], np.zeros(0, OFFSET), empty)],
        (block for corpus in corpora for block in encoded_blocks(corpus)),
    )
    write_corpus(blocks, corpora[0].subword, out, sources, pairs=corpora[0].header.pairs)
    return Corpus.open(out)


def encoded_blocks(corpus: CorpusFile) -> Iterator[Encoded]:
    yield Encoded(corpus.ids[:0], np.zeros(0, OFFSET), corpus.header.empty)
    for begin in range(0, len(corpus), 1 << 16):
        offsets = corpus.offsets[begin : begin + (1 << 16) + 1]
        yield Encoded(corpus.ids[offsets[0] : offsets[-1]], np.diff(offsets), 0)


def write_shard(
    numbered: tuple[int, TextPart], folder: Path, subword: Subword, kaldi: bool
) -> tuple[str | None, int]:
    """Write a shard; its name, None without any sentence, and the number of lines skipped."""
    number, part = numbered
    unnamed = folder / f"{number}{PART}"
    encoded = (encode(block, subword, kaldi) for block in part.blocks())
    try:
        header = write_corpus(encoded, subword, unnamed, [], follow=False)
    except NoSentence as error:
        return None, error.empty
    os.replace(unnamed, folder / name_shard(header))
    return name_shard(header), header.empty


def encode(part: TextPart | TextBlock, subword: Subword, kaldi: bool) -> Encoded:
    """Return the sentences of a part of a text; with `kaldi` each line lacks its first word."""
    texts = [line for block in part.blocks() for line in block.lines()]
    if kaldi:
        texts = [" ".join(text.split(maxsplit=1)[1:]) for text in texts]
    sentences = [sentence for sentence in subword.encode_batch(texts) if sentence]
    return joined(sentences, len(texts) - len(sentences), subword)


def joined(sentences: Sequence[Sequence[int]], empty: int, subword: Subword) -> Encoded:
    lengths = np.fromiter(map(len, sentences), OFFSET, len(sentences))
    ids = np.fromiter(
        itertools.chain.from_iterable(sentences), dtype_of(subword), int(lengths.sum())
    )
    return Encoded(ids, lengths, empty)


def encode_pairs(block: PairBlock, subword: Subword, kaldi: bool) -> Encoded:
    """Encode a block's pairs; UserError for an empty side and for Kaldi ids that differ."""
    lines = block.sources, block.targets
    if kaldi:
        split = [[line.split(maxsplit=1) for line in side] for side in lines]
        ids = ([words[:1] for words in side] for side in split)
        for number, (here, there) in enumerate(zip(*ids, strict=True), block.first):
            if here != there:
                raise UserError(
                    f"{block.source}:{number}: not the utterance of {block.target}:{number}"
                    f" ({''.join(here)!r}, {''.join(there)!r}); give both in the same order"
                )
        lines = tuple([" ".join(words[1:]) for words in side] for side in split)
    sequences, empty = [], 0
    encoded = zip(*map(subword.encode_batch, lines), strict=True)
    for number, (source, target) in enumerate(encoded, block.first):
        if source and target:
            sequences.append([*source, EOS, *target])
        elif source or target:
            lack, other = (block.target, block.source)[:: 1 if source else -1]
            raise UserError(
                f"{lack}:{number}: empty after normalisation, and line {number} of {other} is not;"
                " leave the pair out of both"
            )
        else:
            empty += 1
    return joined(sequences, empty, subword)


def dtype_of(subword: Subword) -> np.dtype:
    return np.dtype("<u2" if subword.size <= 1 << 16 else "<u4")


def write_corpus(
    encoded: Iterable[Encoded],
    subword: Subword,
    out,
    sources: list[str],
    pairs: bool = False,
    follow: bool = True,
) -> Header:
    """Write a corpus file (through a link if `follow`), ids first, then offsets, when their number
    is known; return its header. NoSentence, and no file, without any.
    """
    with (
        atomic_path(out, follow) as whole,
        scratch(whole) as id_file,
        scratch(whole) as offset_file,
    ):
        ids, offsets = Hashed(id_file), Hashed(offset_file)
        total = write_arrays(encoded, ids, offsets)
        if not total["sentences"]:
            raise NoSentence((*sources, out)[0], total["empty"])
        model = subword.content
        header = Header(
            dtype=dtype_of(subword).str, **total, vocabulary=subword.hash, scheme=subword.scheme,
            size=subword.size, normaliser=subword.normaliser, model=len(model),
            version=__version__, sources=sources, pairs=pairs,
            content=content_digest(hashlib.sha256(model), offsets.sha256, ids.sha256),
        )  # fmt: skip
        head = header.dumps() + model + bytes(padding(len(model)))
        join(whole, head, offset_file, id_file)
    return header


def write_arrays(encoded: Iterable[Encoded], ids: Hashed, offsets: Hashed) -> Counter[str]:
    """Write the arrays of all blocks; return the numbers that a header says of them."""
    total, longest = Counter(), 0
    offsets.write(np.zeros(1, OFFSET))
    for block in encoded:
        ids.write(block.ids)
        offsets.write((total["tokens"] + np.cumsum(block.lengths)).astype(OFFSET))
        total.update(
            sentences=len(block.lengths), tokens=len(block.ids), empty=block.empty,
            unknown=int(np.count_nonzero(block.ids == UNK)),
        )  # fmt: skip
        longest = max(longest, int(block.lengths.max(initial=0)))
    return Counter(total, longest=longest)


def scratch(beside: Path):
    """Return an unnamed file on the disk of `beside`, which vanishes with the process."""
    return tempfile.TemporaryFile(dir=beside.parent)


def join(path: Path, head: bytes, offsets, ids) -> None:
    """Write head, offsets and ids to `path`."""
    with open(path, "wb") as stream:
        stream.write(head)
        for part in (offsets, ids):
            part.seek(0)
            shutil.copyfileobj(part, stream, 1 << 20)
