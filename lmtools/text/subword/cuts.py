"""Cuts of words into unigram pieces that are drawn, not the most probable one (subword
regularisation, Kudo 2018). SentencePiece's `sample` over all cuts, but from a generator of the
caller's: SentencePiece's own cannot be set back, and a training that goes on has to draw the same.
"""

import math
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np

from lmtools.base.errors import UserError
from lmtools.text.subword.base import SPECIALS, Subword
from lmtools.text.subword.sentences import REMEMBERED, UnigramPieces
from lmtools.text.subword.spelled import Spelled

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
