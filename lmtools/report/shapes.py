"""Expected shapes of artifacts, so that a damaged or foreign one is refused in one line before
anything is drawn.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, defstruct

from lmtools.base.errors import UserError
from lmtools.base.grammar import Amount, Finite, Positive, Whole, fit

NUMBER, AMOUNT, POSITIVE, WHOLE, TEXT, PLAIN = Finite, Amount, Positive, Whole, str, str | Finite
ANY = "*"  # in a mapping of ANY to a shape: each key

# A shape is a type, a mapping of names to shapes (`name?` may be absent or null), [shape] of each
# entry of a list, (shape,) of one that is not empty, or (shape, shape ...) of one of that length.


def fitting(tree: Mapping, shape: Mapping, where, remedy: str = "write it again") -> Mapping:
    """Return `tree`, if it has that shape; UserError about `where` otherwise."""
    fit(tree, as_type(shape), where, remedy=remedy)
    return tree


def misfit(value, shape) -> str | None:
    """Return the first part of a value that has not that shape, in words; None where all has."""
    try:
        fit(value, as_type(shape), "")
    except UserError as error:
        return str(error).removeprefix(": ").partition("; ")[0]
    return None


def as_type(shape):
    """Return the type of what has that shape."""
    if isinstance(shape, list):
        return list[as_type(shape[0])]
    if isinstance(shape, tuple) and len(shape) == 1:
        return Annotated[list[as_type(shape[0])], Meta(min_length=1)]
    if isinstance(shape, tuple):
        return tuple[tuple(map(as_type, shape))]
    if not isinstance(shape, dict):
        return shape
    if not shape:
        return dict
    if ANY in shape:
        return dict[Any, as_type(shape[ANY])]
    keys = {f"f{place}": key.removesuffix("?") for place, key in enumerate(shape)}
    types = [(key, as_type(inner)) for key, inner in shape.items()]
    fields = [
        (name, kind | None, None) if key.endswith("?") else (name, kind)
        for name, (key, kind) in zip(keys, types, strict=True)
    ]
    return defstruct("Shape", fields, rename=keys, kw_only=True)
