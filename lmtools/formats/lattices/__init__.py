"""Lattice formats, one file each; LATTICES names them, and each reads to and writes from Lattice.

A new format is a module with `recognises(path, first line)`, `read(path)` and `write(lattices,
path)`, and one line in LATTICES. Formats with a lattice a file (SLF, pocketsphinx, OpenFst) take a
file or a directory of files, the others hold many in one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from lmtools.formats import registry
from lmtools.formats.lattices import kaldi, openfst, plf, pocketsphinx, slf, wcn
from lmtools.formats.registry import format_of
from lmtools.types import Lattice

LATTICES = {
    "kaldi": replace(
        format_of(
            kaldi,
            "Kaldi's lattices, compact or plain, text or binary: a table or a decode directory",
        ),
        tables=True,
    ),
    "slf": format_of(
        slf,
        "HTK's Standard Lattice Format, words on nodes or links: a file, or a directory of them",
    ),
    "pocketsphinx": format_of(
        pocketsphinx, "pocketsphinx's own .lat: a file, or a directory of them"
    ),
    "plf": format_of(plf, "Moses' PLF, one lattice a line"),
    "openfst": format_of(
        openfst, "OpenFst's text with symbols or ids: a file, or a directory of them"
    ),
    "wcn": format_of(wcn, "confusion networks, one a line of word:slot:posterior"),
}


def detect(path, default: str | None = None) -> str:
    """The name of the lattice format of `path`, or `default` if none recognises it; UserError if
    that is None too.
    """
    return registry.detect(path, LATTICES, default)


def read(path, spec: str | None = None) -> list[Lattice]:
    """The lattices in `path`, in the format `spec` (NAME or NAME:option=value; None: the one that
    recognises the path).
    """
    return list(stream(path, spec))


def stream(path, spec: str | None = None) -> Iterator[Lattice]:
    """The same one by one, as soon as they can be read."""
    yield from registry.find_format(spec or detect(path), LATTICES).read(path)


def write(lattices: Iterable[Lattice], path, spec: str) -> None:
    """Write `lattices` to `path` in the format `spec`."""
    registry.find_format(spec, LATTICES).write(lattices, path)


def default_weights(lattice: Lattice) -> dict[str, float]:
    """The weights that its format states for the lattice's scores, `am` 1: {"am": 1, "lm": lmscale,
    "words": word penalty}.

    Scores of which nothing is said have weight 1.
    """
    return {**dict.fromkeys(lattice.scores, 1.0), **slf.default_weights(lattice)}
