"""N-best lists of translations, to be rescored: beam search by a model of `lmtools train`."""

from lmtools.translate.run import Translated, TranslateOptions, translate
from lmtools.translate.search import Finished, search

__all__ = ["Finished", "TranslateOptions", "Translated", "search", "translate"]
