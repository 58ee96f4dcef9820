"""Arguments of the algorithms from programs: one check for each name."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import ParamSpec, TypeVar

from lmtools.base.grammar import (
    check_kind,
    check_mapping,
    check_number,
    check_text,
    check_whole,
    list_items,
    mismatch,
)
from lmtools.types import Lattice

Given, Result = ParamSpec("Given"), TypeVar("Result")


def check_lattice(value, name: str) -> Lattice:
    """Return `value` if it is a Lattice."""
    return check_kind(value, Lattice, name, "a Lattice", remedy="make it with lmtools.Lattice.of")


def check_weights(value, name: str) -> Mapping[str, float]:
    check_mapping(value, name, "a mapping of names to weights")
    return {key: check_number(weight, f"{name}[{key!r}]") for key, weight in value.items()}


CHECKS: dict[str, Callable] = {
    "lattice": check_lattice,
    "weights": check_weights,
    **dict.fromkeys(("n", "states"), partial(check_whole, low=1)),
    **dict.fromkeys(("scale", "beam", "density"), partial(check_number, low=0)),
    "arcs": partial(check_whole, low=0),
}


def check_arguments(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Return the function behind checks of its arguments; None passes as a default."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def checked(*args: Given.args, **more: Given.kwargs) -> Result:
        given = signature.bind(*args, **more)
        for name, value in given.arguments.items():
            optional = value is None and signature.parameters[name].default is None
            if name in CHECKS and not optional:
                given.arguments[name] = CHECKS[name](value, name)
        return function(*given.args, **given.kwargs)

    return checked


def list_words(words: Iterable[str], name: str) -> list[str]:
    """Return the words of a text; UserError for the text itself, whose characters they would be."""
    if isinstance(words, str):
        raise mismatch(words, name, "a list of words", "split it: text.split()")
    items = list_items(words, name, "words")
    return [check_text(word, f"{name}[{place}]") for place, word in enumerate(items)]
