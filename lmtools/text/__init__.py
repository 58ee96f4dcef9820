"""Text as a language model sees it."""

from lmtools.text.normaliser import MARK, NORMALISERS, Normaliser

__all__ = ["MARK", "NORMALISERS", "Normaliser"]
