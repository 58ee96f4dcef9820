"""Formats of sentence pairs and their similarity, one file each; PAIRS names them, and each reads
to and writes from SentencePair.

A new format is a module with `recognises(path, first line)`, `read(path)` and `write(pairs, path)`,
and one line in PAIRS.
"""

from collections.abc import Iterable

from lmtools.formats import registry
from lmtools.formats.pairs import glue, sick, stsb, tsv
from lmtools.formats.registry import format_of
from lmtools.types import SentencePair

PAIRS = {
    "stsb": format_of(
        stsb, "STS Benchmark's csv: genre, file, year, id, score and two sentences between tabs"
    ),
    "glue": format_of(glue, "GLUE's STS-B: tab-separated, with a header"),
    "sick": format_of(sick, "SICK: tab-separated, with a header, one file or one a set"),
    "tsv": format_of(
        tsv, "two sentences and their similarity, if there is one, between tabs; no header"
    ),
}


def detect(path, default: str | None = None) -> str:
    """The name of the format of `path`, or `default` if none recognises it; UserError if that is
    None too.
    """
    return registry.detect(path, PAIRS, default)


def read(path, spec: str | None = None) -> list[SentencePair]:
    """The sentence pairs in `path`, in the format `spec` (NAME or NAME:option=value; None: the one
    that recognises the path).

    There is at least one, and all have a similarity or none has; UserError with the line of what is
    not as the format says.
    """
    return list(registry.find_format(spec or detect(path), PAIRS).read(path))


def write(pairs: Iterable[SentencePair], path, spec: str = "tsv") -> None:
    """Write `pairs` to `path` in the format `spec`; UserError for what it could not give back."""
    registry.find_format(spec, PAIRS).write(pairs, path)
