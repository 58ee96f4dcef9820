"""What the actions on lattices share: weights, repairs, messages."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from lmtools.errors import UserError
from lmtools.formats.checks import number
from lmtools.formats.lattices import default_weights, stream
from lmtools.lattice.check import drop_unusable
from lmtools.rescore import load
from lmtools.types import Lattice


def weights_of(args) -> Mapping[str, float] | None:
    """The weights that the option gives, None without it."""
    if not args.weights:
        return None
    if "=" not in args.weights or Path(args.weights).exists():
        return dict(load(args.weights).features)
    weights = {}
    for name, _, value in (part.partition("=") for part in args.weights.split(",")):
        if not name or name in weights:
            raise UserError(
                f"--weights {args.weights}: {name or 'no name'!r} before a weight; write"
                " NAME=NUMBER,..., each name once"
            )
        weights[name] = number(value, f"--weights {args.weights}", f"the weight of {name!r}")
    return weights


def known(weights: Mapping[str, float] | None, lattice: Lattice) -> Mapping[str, float]:
    """`weights`, or the lattice's own."""
    return default_weights(lattice) if weights is None else weights


def lattices_of(args, source: str | None = None) -> Iterator[Lattice]:
    """The lattices of the input one by one, in the format `source` or that of the arguments;
    UserError if there are none.
    """
    some = False
    for lattice in stream(args.input, source or args.format):
        some = True
        yield lattice
    if not some:
        raise UserError(f"{args.input}: no lattices; give the recogniser's")


def sound(lattice: Lattice) -> Lattice:
    """The lattice, repaired where algorithms need it; what was done is said."""
    lattice, messages = drop_unusable(lattice)
    say(messages)
    return lattice


def say(lines: Iterable[str]) -> None:
    """Print messages on standard error."""
    for line in lines:
        print(line, file=sys.stderr)
