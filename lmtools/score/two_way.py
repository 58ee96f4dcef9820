"""Neural models that predict words from both sides as scorers."""

import numpy as np

from lmtools.score.neural import NeuralScorer
from lmtools.text.subword import UNK


class TwoWayScorer(NeuralScorer):
    """A model that predicts each word from the left and, apart from that, from the right: the mean
    of both log-probabilities.

    Each direction alone gives a sentence a probability; the mean is the logarithm of their
    geometric mean, and exp of its negative mean over words and ends is the perplexity that ELMo's
    authors print. A sentence is its piece ids; what has a score are its words.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.kind = "two-way perplexity"

    def cost(self, sentence):
        return 2 * (self.positions(sentence) + sum(self.boundary))

    def positions(self, sentence):
        return len(self.subword.words.split(sentence))

    def spans(self, sentence, words):
        return [1] * self.positions(sentence)

    def unknown(self, sentence):
        words = self.subword.words
        return np.array([words.id_of(word) == UNK for word in words.split(sentence)], dtype=bool)

    def token_names(self, sentence):
        spellings = self.subword.words.split(sentence)
        return ["".join(super(TwoWayScorer, self).token_names(spelling)) for spelling in spellings]

    def split_values(self, values, sentences):
        bounds = np.cumsum([2 * (len(self.unknown(s)) + 1) for s in sentences])[:-1]
        parts = np.split(values, bounds)
        return [average_directions(*np.split(part, 2)) for part in parts]


def average_directions(from_left: np.ndarray, from_right: np.ndarray) -> np.ndarray:
    """Average both directions for each word and, last, the end: from the left the end is last, from
    the right it is first.
    """
    return (from_left + np.roll(from_right, -1, axis=0)) / 2
