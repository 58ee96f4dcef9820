"""Words spelled by pieces: a two-way language model (ELMo, subword ELMo) reads the pieces of any
word and predicts words of a list. Both stand in one content with one hash, so that corpora and
model directories need nothing else.
"""

import json
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from lmtools.base.errors import UserError
from lmtools.text.subword.base import MASK, SPECIALS, UNK, Subword
from lmtools.text.subword.lists import Char, Word
from lmtools.text.subword.sentences import REMEMBERED, BpePieces, UnigramPieces

PIECES: dict[str, type[Subword]] = {kind.scheme: kind for kind in (BpePieces, UnigramPieces, Char)}
END = MASK  # the id that marks the end of a word's spelling: nothing is masked here


class WordTargets:
    """The words that a two-way model predicts, told apart by their spellings (tuples of piece ids).

    `size` counts the specials; `counts` (size,) says how often each was seen where the list was
    made, words outside it as <unk>.
    """

    def __init__(self, words: Word, pieces: Subword, unknown: int):
        self.words, self.pieces, self.size = words, pieces, words.size
        self.counts = np.concatenate([np.zeros(len(SPECIALS), dtype=np.int64), words.counts])
        self.counts[UNK] = unknown
        self.known: dict[tuple[int, ...], int] = {}

    def split(self, ids: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the spelling of each word in the flat piece ids of a sentence."""
        ids = np.asarray(ids, dtype=np.int64)
        flat, starts = ids.tolist(), np.flatnonzero(self.pieces.begins[ids]).tolist()
        return [tuple(flat[a:b]) for a, b in pairwise([*starts, len(flat)])]

    def id_of(self, spelling: tuple[int, ...]) -> int:
        """Return the id of the word so spelled; <unk> if the list or the pieces lack it."""
        number = self.known.get(spelling)
        if number is None:
            text = self.pieces.decode(spelling)
            number = UNK if UNK in spelling else self.words.ids.get(text, UNK)
            if len(self.known) < REMEMBERED:
                self.known[spelling] = number
        return number


class Spelled(Subword):
    """Pieces inside words, and the predicted word list `words`. The content is a line of JSON, that
    of the pieces and that of the list.
    """

    scheme = "spelled"
    file = "spelled.model"

    @staticmethod
    def join(pieces: Subword, words: Word, unknown: int) -> bytes:
        """Return the content made of both; `unknown`: words of the text that the list left out."""
        if pieces.scheme not in PIECES:
            raise UserError(
                f"words are spelled by pieces inside them ({', '.join(PIECES)}), not by"
                f" {pieces.scheme}; choose another --type"
            )
        head = {"pieces": pieces.scheme, "bytes": len(pieces.content), "unknown": unknown}
        return json.dumps(head).encode() + b"\n" + pieces.content + words.content

    def read(self, content: bytes) -> tuple[str, ...]:
        head, _, rest = content.partition(b"\n")
        try:
            fields = json.loads(head)
            kind, length, unknown = (
                PIECES[fields["pieces"]],
                int(fields["bytes"]),
                int(fields["unknown"]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"its first line lacks or misnames {error}") from None
        self.pieces_model = kind(rest[:length], self.normaliser)
        self.words = WordTargets(Word(rest[length:], self.normaliser), self.pieces_model, unknown)
        return self.pieces_model.vocabulary

    def beginnings(self) -> np.ndarray:
        return self.pieces_model.begins

    def segment(self, texts: Sequence[str]) -> list[list[int]]:
        # The space makes characters mark the first word too; SentencePiece does not see it.
        return self.pieces_model.segment([f" {text}" if text else "" for text in texts])

    def surfaces(self, text: str) -> list[str]:
        return self.pieces_model.surfaces(f" {text}") if text else []
