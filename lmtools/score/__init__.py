"""Scoring texts and N-best lists with any language model."""

from lmtools.score.load import load
from lmtools.score.ppl import mixture_perplexity, perplexity
from lmtools.score.run import TextScores, score_lists, score_texts
from lmtools.score.sources import Sources

__all__ = [
    "Sources",
    "TextScores",
    "load",
    "mixture_perplexity",
    "perplexity",
    "score_lists",
    "score_texts",
]
