"""Expected shapes of artifacts, so that a damaged or foreign one is refused in one line before
anything is drawn.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from lmtools.errors import UserError


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
    if wrong := misfit(tree, shape, ""):
        raise UserError(f"{where}: {wrong}; {remedy}")
    return tree


def misfit(value, shape, place: str) -> str | None:
    """Return the first part of a value that has not that shape, in words; None where all has."""
    if isinstance(shape, Value):
        return None if shape.holds(value) else f"{place} is {str(value)!r:.40}, not {shape.name}"
    if isinstance(shape, dict):
        return misfit_of_mapping(value, shape, place)
    if not isinstance(value, list):
        return f"{place} is {str(value)!r:.40}, not a list"
    if isinstance(shape, tuple) and (not value if len(shape) == 1 else len(value) != len(shape)):
        return (
            f"{place} has {len(value)} entries, not"
            f" {len(shape)}{' or more' if len(shape) == 1 else ''}"
        )
    return next(
        filter(
            None,
            (misfit(one, shape[i % len(shape)], f"{place}[{i}]") for i, one in enumerate(value)),
        ),
        None,
    )


def misfit_of_mapping(value, shape: Mapping, place: str) -> str | None:
    """Return the `misfit` of a value that should be a mapping."""
    if not isinstance(value, Mapping):
        return f"{place or 'the whole'} is {str(value)!r:.40}, not named values"
    for key, inner in shape.items():
        name = key.removesuffix("?")
        full = f"{place}.{name}" if place else name
        if (
            key == ANY
            or (name not in value and key != name)
            or (key != name and value[name] is None)
        ):
            continue
        if name not in value:
            return f"has no {full!r}"
        if wrong := misfit(value[name], inner, full):
            return wrong
    rest = {
        name: one
        for name, one in value.items()
        if ANY in shape and name not in shape and f"{name}?" not in shape
    }
    return next(
        filter(None, (misfit(one, shape[ANY], f"{place}.{name}") for name, one in rest.items())),
        None,
    )
