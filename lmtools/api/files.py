"""Lists and lattices of every format, read and written as values."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from lmtools.formats import FORMATS
from lmtools.formats.lattices import LATTICES
from lmtools.formats.registry import find_format
from lmtools.types import Lattice, NBest

Item = TypeVar("Item", NBest, Lattice)
KINDS = {NBest: FORMATS, Lattice: LATTICES}


def read(path, kind: type[Item] = NBest, *, form: str | None = None) -> list[Item]:
    """The N-best lists in `path`, or its lattices if `kind` is Lattice.

    `form` is NAME or NAME:option=value,... of docs/formats.md; None: recognised. UserError for what
    is of no such format or damaged. A str that is one of Kaldi's rspecifiers (`ark:...`) is read as
    one, a Path never is.
    """
    return KINDS[kind].read(path, form)


def stream(path, kind: type[Item] = NBest, *, form: str | None = None) -> Iterator[Item]:
    """The same one by one, each as soon as the format permits it."""
    return KINDS[kind].stream(path, form)


def write(items: Iterable[NBest] | Iterable[Lattice], path, form: str = "jsonl") -> None:
    """Write lists or lattices to `path` in the format `form`, whole or not at all; UserError for
    what it cannot hold.
    """
    find_format(form, FORMATS | LATTICES).write(items, path)
