"""Binarised text: token ids with sentence offsets in a file, or in shards with an index, read
through a memory map.
"""

from lmtools.text.corpus.binarise import (
    NoSentence,
    binarise,
    binarise_pairs,
    binarise_shards,
    join_corpora,
    write_index,
    write_shards,
)
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
    "ALIGNMENT", "INDEX", "MAGIC", "Corpus", "CorpusFile", "Header", "NoSentence", "binarise",
    "binarise_pairs", "binarise_shards", "join_corpora", "read_header", "write_index",
    "write_shards",
]  # fmt: skip
