"""Formats of sentence pairs and their similarity, one file each; PAIRS names them, and each reads
to and writes from SentencePair.

A new format is a module with ABOUT, `recognises(path, first line)`, `read(path)` and `write(pairs,
path)`, and one line in PAIRS. A file holds one pair at least, and all have a similarity or none
has; UserError with the line of what is not as the format says.
"""

from collections.abc import Iterable

from lmtools.formats.pairs import glue, sick, stsb, tsv
from lmtools.formats.registry import Formats, format_of
from lmtools.types import SentencePair

PAIRS = Formats(
    {
        "stsb": format_of(stsb),
        "glue": format_of(glue),
        "sick": format_of(sick),
        "tsv": format_of(tsv),
    }
)

detect, read = PAIRS.detect, PAIRS.read


def write(pairs: Iterable[SentencePair], path, spec: str = "tsv") -> None:
    """Write `pairs` to `path`; UserError for what a reader could not give back."""
    PAIRS.write(pairs, path, spec)
