"""Expected shapes of artifacts, so that a damaged or foreign one is refused in one line before
anything is drawn.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from lmtools.base.errors import UserError


class Value(NamedTuple):
    """A single value: what it is called in a message, and whether something is one."""

    name: str
    holds: Callable[[object], bool]


def is_number(value) -> bool:
    """Return whether a value is a finite number."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < 1e300
        and math.isfinite(value)
    )


NUMBER = Value("a finite number", is_number)
AMOUNT = Value("a finite number, 0 or more", lambda value: is_number(value) and value >= 0)
POSITIVE = Value("a finite number above 0", lambda value: is_number(value) and value > 0)
WHOLE = Value(
    "a whole number, 0 or more",
    lambda value: isinstance(value, int) and is_number(value) and value >= 0,
)
TEXT = Value("text", lambda value: isinstance(value, str))
PLAIN = Value("text or a number", lambda value: isinstance(value, str) or is_number(value))
ANY = "*"  # in a mapping: each key that is not named

# A shape is a Value, a mapping of names to shapes (`name?` may be absent or null), [shape] of each
# entry of a list, (shape,) of one that is not empty, or (shape, shape ...) of one of that length.


def fitting(tree: Mapping, shape: Mapping, where, remedy: str = "write it again") -> Mapping:
    """Return `tree`, if it has that shape; UserError about `where` otherwise."""
    if wrong := misfit(tree, shape):
        raise UserError(f"{where}: {wrong}; {remedy}")
    return tree


def misfit(value, shape) -> str | None:
    """Return the first part of a value that has not that shape, in words; None where all has."""
    return next(list_misfits(value, shape, ""), None)


def list_misfits(value, shape, place: str) -> Iterator[str]:
    """Yield the parts of a value that have not that shape, in words."""
    shown, title = f"{str(value)!r:.40}", place or "the whole"
    if isinstance(shape, Value):
        if not shape.holds(value):
            yield f"{place} is {shown}, not {shape.name}"
    elif isinstance(shape, dict):
        if isinstance(value, Mapping):
            yield from list_misfits_of_mapping(value, shape, place)
        else:
            yield f"{title} is {shown}, not named values"
    elif not isinstance(value, list):
        yield f"{place} is {shown}, not a list"
    elif isinstance(shape, tuple) and (not value if len(shape) == 1 else len(value) != len(shape)):
        least = " or more" if len(shape) == 1 else ""
        yield f"{place} has {len(value)} entries, not {len(shape)}{least}"
    else:
        for i, entry in enumerate(value):
            yield from list_misfits(entry, shape[i % len(shape)], f"{place}[{i}]")


def list_misfits_of_mapping(value: Mapping, shape: Mapping, place: str) -> Iterator[str]:
    """Yield the entries of a mapping that have not their shape, and those that it lacks."""
    prefix = f"{place}." if place else ""
    for key, inner in shape.items():
        name = key.removesuffix("?")
        if key != ANY and value.get(name) is None and key != name:
            continue
        if key != ANY and name not in value:
            yield f"has no {prefix + name!r}"
        elif key != ANY:
            yield from list_misfits(value[name], inner, prefix + name)
    known = {key.removesuffix("?") for key in shape}
    for name in value if ANY in shape else ():
        if name not in known:
            yield from list_misfits(value[name], shape[ANY], f"{place}.{name}")
