"""What the actions on lattices share."""

from collections.abc import Iterator, Mapping

from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.formats.lattices import default_weights, stream
from lmtools.lattice.check import drop_unusable
from lmtools.types import Lattice


def choose_weights(weights: Mapping[str, float] | None, lattice: Lattice) -> Mapping[str, float]:
    """Return `weights`, or the lattice's own."""
    return default_weights(lattice) if weights is None else weights


def read_lattices(args) -> Iterator[Lattice]:
    """Yield the lattices of the input one by one; UserError if there are none."""
    read = False
    for lattice in stream(args.input, args.format):
        read = True
        yield lattice
    if not read:
        raise UserError(f"{args.input}: no lattices; give the recogniser's")


def mend_lattice(lattice: Lattice) -> Lattice:
    """Return the lattice, repaired where algorithms need it; what was done is said."""
    lattice, messages = drop_unusable(lattice)
    say_lines(messages)
    return lattice
