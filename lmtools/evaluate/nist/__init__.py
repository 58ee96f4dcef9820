"""Scoring as NIST's sclite and csrfilt score speech: alternations, optional words, fragments, ctm
against stm. No networks of recognisers (lmtools.lattice) and no rules of words (lmtools.text.glm).
"""

from lmtools.evaluate.nist.alignment import WordPairs, align_texts
from lmtools.evaluate.nist.networks import Rules
from lmtools.evaluate.nist.segments import CutTexts, StmSegment, cut_words

__all__ = ["CutTexts", "Rules", "StmSegment", "WordPairs", "align_texts", "cut_words"]
