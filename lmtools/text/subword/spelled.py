"""Words spelled by pieces: a two-way language model (ELMo, subword ELMo) reads the pieces of any
word and predicts words of a list. Both stand in one content with one hash, so that corpora and
model directories need nothing else.

Cuts of words into unigram pieces can be drawn, too, not the most probable one (subword
regularisation, Kudo 2018): SentencePiece's `sample` over all cuts, but from a generator of the
caller's, as SentencePiece's own cannot be set back, and a training that goes on has to draw the
same.
"""

import json
import math
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

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


# of the pieces that end at a place in a word: their cumulative chances, and (begin, id) of each
Ends = tuple[list[float], list[tuple[int, int]]]


class SampledCuts:
    """Cuts c of the words of a vocabulary, drawn with a chance in proportion to p(c)^alpha: 1 draws
    from the unigram model, 0 draws all cuts alike, a great one the best cut.
    """

    def __init__(self, subword: Subword, alpha: float):
        pieces = subword.pieces_model if isinstance(subword, Spelled) else None
        if not isinstance(pieces, UnigramPieces):
            raise UserError(
                "cut_alpha draws cuts of words that unigram pieces spell, not"
                f" {pieces.scheme if pieces else subword.scheme}; make the vocabulary with lmtools"
                " subword --type unigram --words DIR, or leave cut_alpha out"
            )
        self.split, processor = subword.words.split, pieces.processor
        self.vocabulary = pieces.vocabulary
        self.logs = {
            piece: (number, alpha * processor.get_score(processor.piece_to_id(piece)))
            for number, piece in enumerate(self.vocabulary)
            if number >= len(SPECIALS) and number not in pieces.bytes
        }
        self.widest = max(map(len, self.logs))
        self.known: dict[tuple[int, ...], list[Ends]] = {}

    def draw(self, ids: Sequence[int], generator: np.random.Generator) -> np.ndarray:
        """Return ids of the same sentence with each word cut anew; a word with an unknown character
        stays as it is.
        """
        draws = iter(generator.random(sum(len(self.vocabulary[i]) for i in ids)).tolist())
        words = [self.draw_word(word, draws) for word in self.split(ids)]
        return np.array([i for word in words for i in word], dtype=np.int64)

    def draw_word(self, spelling: tuple[int, ...], draws: Iterator[float]) -> Sequence[int]:
        """Draw a cut from the end of a word to its beginning, a piece each of `draws`."""
        ends = self.ends_of(spelling)
        place, cut = len(ends), []
        while place:
            sums, ways = ends[place - 1]
            place, piece = ways[min(bisect(sums, next(draws)), len(ways) - 1)]
            cut.append(piece)
        return cut[::-1] or spelling

    def ends_of(self, spelling: tuple[int, ...]) -> list[Ends]:
        """Return the pieces that may end at each place of a word, by what all cuts before them come
        to; nothing of a word that has no other cut, or that the pieces do not make up.
        """
        ends = self.known.get(spelling)
        if ends is None:
            text = "".join(self.vocabulary[i] for i in spelling)
            ends = self.ends(text) if all(self.vocabulary[i] in self.logs for i in spelling) else []
            if len(self.known) < REMEMBERED:
                self.known[spelling] = ends
        return ends

    def ends(self, text: str) -> list[Ends]:
        """Return the pieces that may end at each place of a text."""
        totals, ends = [0.0], []  # totals: logs of sums over all cuts of the text before a place
        for end in range(1, len(text) + 1):
            found = [
                (begin, *self.logs[piece])
                for begin in range(max(0, end - self.widest), end)
                if (piece := text[begin:end]) in self.logs and totals[begin] > -math.inf
            ]
            logs = [totals[begin] + log for begin, _, log in found]
            most = max(logs, default=-math.inf)
            shares = [math.exp(log - most) for log in logs]
            totals.append(most + math.log(math.fsum(shares)) if found else -math.inf)
            sums = [part / math.fsum(shares) for part in accumulate(shares)]
            ends.append((sums, [(begin, number) for begin, number, _ in found]))
        return ends
