"""Scoring texts and N-best lists with any language model."""

from lmtools.score.nbest import perplexity, score_nbest
from lmtools.score.texts import Options, TextScores, score_texts

__all__ = ["Options", "TextScores", "perplexity", "score_nbest", "score_texts"]
