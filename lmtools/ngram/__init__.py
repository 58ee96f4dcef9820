"""n-gram language models: estimated here, queried through KenLM."""

from lmtools.ngram.description import Description
from lmtools.ngram.directory import build
from lmtools.ngram.model import NgramModel

__all__ = ["Description", "NgramModel", "build"]
