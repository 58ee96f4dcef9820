"""Scoring texts and N-best lists with any language model."""

from lmtools.score.ppl import mixture_perplexity, perplexity
from lmtools.score.run import ScoreOptions, TextScores, score_lists, score_texts
from lmtools.score.scorers import NORMALISATIONS
from lmtools.score.sources import Sources

__all__ = [
    "NORMALISATIONS",
    "ScoreOptions",
    "Sources",
    "TextScores",
    "mixture_perplexity",
    "perplexity",
    "score_lists",
    "score_texts",
]
