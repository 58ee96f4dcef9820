"""A language model for pyctcdecode's beam search (its package is needed)."""

import sys
from typing import NamedTuple

import numpy as np
from pyctcdecode.language_model import AbstractLanguageModel

from lmtools.api.lm import LM
from lmtools.score.base import WordPrefixes
from lmtools.score.ngram import NgramScorer


class WordState(NamedTuple):
    """State that pyctcdecode hands from word to word: the search's prefixes and the place among
    them.
    """

    prefixes: WordPrefixes
    node: int


class PyctcdecodeLM(AbstractLanguageModel):
    """Words weigh alpha x log p(word | words before) + beta, as with pyctcdecode's own KenLM class;
    the end of sentence alpha x log p.

        lm = PyctcdecodeLM(lmtools.load("lm"), alpha=0.5, beta=1.5)
        decoder = BeamSearchDecoderCTC(Alphabet.build_alphabet(labels), lm)

    Incomplete words cost nothing, for our vocabularies are open. pyctcdecode asks for one word at a
    time, so that a neural model computes one row at a time; a hypothesis whose text ends in a space
    has its last word and its end scored apart, without a bonus for the end. UserError for a model
    that reads both sides of a word.
    """

    def __init__(self, lm: LM, alpha: float = 0.5, beta: float = 1.5):
        self.lm = lm.scorer
        self.lm.prefixes()  # refuses a model without
        self.alpha, self.beta = alpha, beta

    @property
    def order(self) -> int:
        """By how many words histories that differ count as equal when pyctcdecode prunes them."""
        return self.lm.model.order if isinstance(self.lm, NgramScorer) else sys.maxsize

    def get_start_state(self) -> WordState:
        prefixes = self.lm.prefixes()
        return WordState(prefixes, prefixes.start)

    def score_partial_token(self, partial_token: str) -> float:
        return 0.0

    def score(
        self, prev_state: WordState, word: str, is_last_word: bool = False
    ) -> tuple[float, WordState]:
        """Return the weighted score of a word (and end, if last) after a state, and the next."""
        prefixes, node = prev_state
        total = 0.0
        if word:
            log_p, longer = prefixes.words(np.array([node]), [word])
            total, node = self.alpha * float(log_p[0]) + self.beta, int(longer[0])
        if is_last_word:
            total += self.alpha * float(prefixes.end(np.array([node]))[0])
        return total, WordState(prefixes, node)

    def reset_params(self, **params) -> None:
        """Set `alpha` and `beta`, what `BeamSearchDecoderCTC.reset_params` has of ours."""
        for name in ("alpha", "beta"):
            setattr(self, name, params.get(name, getattr(self, name)))
