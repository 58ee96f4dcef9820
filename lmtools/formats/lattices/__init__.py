"""Lattice formats, one file each; LATTICES names them, and each reads to and writes from Lattice.

A new format is a module with SUMMARY, `recognises(path, first line)`, `read(path)` and
`write(lattices, path)`, and one line in LATTICES. Formats with a lattice a file (SLF, pocketsphinx,
OpenFst) take a file or a directory of files, the others hold many in one.
"""

from lmtools.base.doors import collect, load
from lmtools.formats.lattices import kaldi, openfst, plf, pocketsphinx, slf
from lmtools.formats.registry import Formats, format_of
from lmtools.types import Lattice

LATTICES = Formats(
    {
        "kaldi": format_of(kaldi, tables=True),
        "slf": format_of(slf),
        "pocketsphinx": format_of(pocketsphinx),
        "plf": format_of(plf),
        "openfst": format_of(openfst),
        **{name: format_of(load(place)) for name, place in collect("LATTICES").items()},
    }
)

detect, read, stream, write = LATTICES.detect, LATTICES.read, LATTICES.stream, LATTICES.write


def default_weights(lattice: Lattice) -> dict[str, float]:
    """Return the weights that its format states, `am` 1: {"am": 1, "lm": lmscale, "words":
    penalty}.

    Scores of which nothing is said have weight 1.
    """
    return {**dict.fromkeys(lattice.scores, 1.0), **slf.default_weights(lattice)}
