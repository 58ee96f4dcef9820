"""Text as a language model sees it."""

from lmtools.text.normaliser import MARK, NORMALISERS, Normaliser, add_arguments, from_arguments

__all__ = ["MARK", "NORMALISERS", "Normaliser", "add_arguments", "from_arguments"]
