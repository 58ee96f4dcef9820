"""Binarised text: token ids with sentence offsets in a file, or in shards with an index, read
through a memory map.
"""

from lmtools.text.corpus.binarise import binarise, binarise_pairs, binarise_shards
from lmtools.text.corpus.reading import (
    ALIGNMENT,
    INDEX,
    MAGIC,
    Corpus,
    CorpusFile,
    Header,
    read_header,
)

__all__ = [
    "ALIGNMENT",
    "INDEX",
    "MAGIC",
    "Corpus",
    "CorpusFile",
    "Header",
    "binarise",
    "binarise_pairs",
    "binarise_shards",
    "read_header",
]
