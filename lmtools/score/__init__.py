"""Scoring texts and N-best lists with any language model."""

from lmtools.score.lists import ListParts, Sources, score_lists
from lmtools.score.load import load
from lmtools.score.texts import TextScores, score_texts

__all__ = ["ListParts", "Sources", "TextScores", "load", "score_lists", "score_texts"]
