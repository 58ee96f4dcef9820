"""Scoring texts and N-best lists with any language model."""

from lmtools.score.nbest import perplexity, score_nbest
from lmtools.score.scorers import NORMALISATIONS
from lmtools.score.texts import ScoreOptions, TextScores, score_texts

__all__ = [
    "NORMALISATIONS",
    "ScoreOptions",
    "TextScores",
    "perplexity",
    "score_nbest",
    "score_texts",
]
