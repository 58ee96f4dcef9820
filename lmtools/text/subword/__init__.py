"""Subword models: text to ids and back, with the normaliser they were trained with."""

from lmtools.text.subword.base import BOS, EOS, MASK, PAD, SPECIALS, UNK, Subword
from lmtools.text.subword.directory import (
    SUBWORDS,
    VOCABULARIES,
    adopt,
    assemble,
    load_subword,
    train,
)

__all__ = [
    "BOS", "EOS", "MASK", "PAD", "SPECIALS", "SUBWORDS", "UNK", "VOCABULARIES",
    "Subword", "adopt", "assemble", "load_subword", "train",
]  # fmt: skip
