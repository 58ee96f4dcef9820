"""Sentences as an n-gram model sees them: tokens without symbols that KenLM reserves."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from lmtools.base.computing import WHOLE
from lmtools.base.errors import UserError
from lmtools.base.log import BYTES, track
from lmtools.text import MARK
from lmtools.text.blocks import count_bytes, cut_texts, read_blocks, total_bytes
from lmtools.text.subword import UNK as UNKNOWN_ID
from lmtools.text.subword import Subword

SYMBOLS = ("<unk>", "<s>", "</s>")
UNK, BOS, EOS = range(len(SYMBOLS))
RESERVED = frozenset((*SYMBOLS, "<UNK>"))  # KenLM reads <UNK> as <unk>
LOWEST = -99.0  # log10 that ARPA files use for a probability of 0
# What a closed vocabulary's model calls all words outside it: KenLM keeps <unk> for itself, and no
# text has this after any normaliser, nor is it a piece of any subword model.
UNKNOWN = f"{MARK}unk{MARK}"
BLANKS = re.compile("[ \t\r\n\0]+")  # what parts words in KenLM; no-break spaces do not


def split_words(text: str) -> list[str]:
    """Return the words of a text as KenLM's lmplz parts them."""
    return [word for word in BLANKS.split(text) if word]


class TokenisedText:
    """The token lists of texts by `tokenise`; iterating tallies sentences, tokens, reserved."""

    def __init__(self, paths: Sequence, tokenise: Callable[[str], list[str]], shard=WHOLE):
        self.paths, self.tokenise, self.shard = paths, tokenise, shard
        self.sentences = self.tokens = self.reserved = 0

    def __iter__(self) -> Iterator[list[str]]:
        self.sentences = self.tokens = self.reserved = 0
        blocks = read_blocks(self.paths)
        if self.shard != WHOLE:
            parts = self.shard.share(partial(cut_texts, self.paths))
            blocks = (block for part in parts for block in part.blocks())
        for block in track(blocks, "read text", total_bytes(self.paths), BYTES, size=count_bytes):
            for line in block.lines():
                if words := self.allowed(self.tokenise(line)):
                    self.sentences += 1
                    self.tokens += len(words)
                    yield words
        if not self.sentences and self.shard == WHOLE:
            raise UserError(
                f"{self.paths[0]}: no sentence in the text; give text with one sentence a line"
            )

    def allowed(self, words: list[str]) -> list[str]:
        if RESERVED.isdisjoint(words):
            return words
        kept = [word for word in words if word not in RESERVED]
        self.reserved += len(words) - len(kept)
        return kept


def only_known(subword: Subword) -> Callable[[str], list[str]]:
    """Return a function from text to pieces, UNKNOWN for those that are not in or reserved."""
    names = [
        UNKNOWN if piece in RESERVED or i == UNKNOWN_ID else piece
        for i, piece in enumerate(subword.vocabulary)
    ]
    return lambda text: [names[i] for i in subword.encode(text)]
