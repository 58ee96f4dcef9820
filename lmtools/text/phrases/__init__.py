"""Phrases of a glossary (names, terms, products) found in the words of texts."""

from lmtools.text.phrases.glossary import (
    PHRASES,
    Glossary,
    Phrase,
    PhraseSpec,
    make_glossary,
    parse_phrase,
    read_glossary,
)
from lmtools.text.phrases.matching import Occurrence, PhraseAutomaton

__all__ = [
    "PHRASES",
    "Glossary",
    "Occurrence",
    "Phrase",
    "PhraseAutomaton",
    "PhraseSpec",
    "make_glossary",
    "parse_phrase",
    "read_glossary",
]
