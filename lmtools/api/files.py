"""Lists and lattices of every format, read and written as values."""

from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from typing import Any, TypeAlias, TypeVar, overload

from lmtools.api.checks import check_nbest
from lmtools.base.errors import UserError
from lmtools.base.grammar import check_path, check_text, mismatch
from lmtools.formats import FORMATS
from lmtools.formats.lattices import LATTICES
from lmtools.formats.registry import Formats, find_format
from lmtools.lattice.arguments import check_lattice
from lmtools.types import Lattice, NBest

Item = TypeVar("Item", NBest, Lattice)
File: TypeAlias = "str | PathLike[str]"
KINDS = {NBest: FORMATS, Lattice: LATTICES}


@overload
def read(path: File, *, form: str | None = None) -> list[NBest]: ...


@overload
def read(path: File, kind: type[Item], *, form: str | None = None) -> list[Item]: ...


def read(path: File, kind: type = NBest, *, form: str | None = None) -> list[Any]:
    """Return the N-best lists in `path`, or its lattices if `kind` is Lattice.

    `form` is NAME or NAME:option=value,... of docs/formats.md; None: recognised. UserError for what
    is of no such format or damaged. A str that is one of Kaldi's rspecifiers (`ark:...`) is read as
    one, a Path never is.
    """
    return formats_of(kind, path, form).read(path, form)


@overload
def stream(path: File, *, form: str | None = None) -> Iterator[NBest]: ...


@overload
def stream(path: File, kind: type[Item], *, form: str | None = None) -> Iterator[Item]: ...


def stream(path: File, kind: type = NBest, *, form: str | None = None) -> Iterator[Any]:
    """Return the same one by one, each as soon as the format permits it."""
    return formats_of(kind, path, form).stream(path, form)


def write(items: Iterable[NBest] | Iterable[Lattice], path: File, form: str = "jsonl") -> None:
    """Write lists or lattices to `path` in the format `form`, whole or not at all; UserError for
    what it cannot hold.
    """
    check_path(path, "path")
    writer = find_format(check_text(form, "form"), FORMATS | LATTICES)
    name = form.partition(":")[0]
    what = "N-best lists" if name in FORMATS else "lattices"
    if isinstance(items, NBest | Lattice):
        raise UserError("items: one alone; write [it]")
    if isinstance(items, str | bytes | Mapping) or getattr(items, "ndim", 1) != 1:
        raise mismatch(items, "items", what)
    if not isinstance(items, Iterable):
        raise mismatch(items, "items", what)
    check = check_nbest if name in FORMATS else check_lattice
    writer.write((check(item, f"items[{place}]") for place, item in enumerate(items)), path)


def formats_of(kind, path, form: str | None) -> Formats:
    """Return the formats of a kind; UserError for arguments that are none."""
    if not isinstance(kind, type) or kind not in KINDS:
        raise mismatch(kind, "kind", "lmtools.NBest or lmtools.Lattice")
    check_path(path, "path")
    if form is not None:
        check_text(form, "form")
    return KINDS[kind]
