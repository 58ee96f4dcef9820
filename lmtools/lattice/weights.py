"""The score that paths are compared by, the weighted sum of an arc's named scores; and several
scores in one, for formats that hold one or two an arc. And checks of what programs give the
algorithms: one for each name of an argument.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ParamSpec, TypeVar

import numpy as np

from lmtools.base.errors import UserError
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

# the built-in feature: 1 for each word, so that its weight is the word insertion bonus
WORDS = "words"


def total(lattice: Lattice, weights: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted scores of the arcs (A,) and of ending in each final state (F,).

    A score with weight 0 is not looked at; one of -inf with any other weight, also a negative one,
    makes the sum -inf. A score column called `words` takes the place of the built-in feature.
    UserError for an unknown name and for NaN and +inf.
    """
    arcs, finals = np.zeros(len(lattice.words)), np.zeros(len(lattice.finals))
    for name, weight in weights.items():
        for sums, column in zip((arcs, finals), columns(lattice, name), strict=True):
            if weight:
                sums += np.where(column == -np.inf, -np.inf, weight * column)
    for sums, what in ((arcs, "an arc"), (finals, "a final state")):
        if not (sums < np.inf).all():
            raise UserError(
                f"{lattice.utt}: a score of {what} is NaN or too high; drop it with lmtools lattice"
                " info --repair"
            )
    return arcs, finals


def columns(lattice: Lattice, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a feature's values on arcs (A,) and finals (F,), 0 of a lattice without either;
    UserError if none has the name.
    """
    if name in lattice.scores:
        return lattice.scores[name], lattice.final_scores[name]
    if name == WORDS:
        return np.array([word is not None for word in lattice.words], dtype=np.float64), np.zeros(
            len(lattice.finals)
        )
    if not lattice.words and not lattice.scores:
        return np.zeros(0), np.zeros(len(lattice.finals))
    names = ", ".join([*lattice.scores, WORDS])
    raise UserError(
        f"{lattice.utt}: no score {name!r} in the lattice; give weights to some of: {names}"
    )


def merge_scores(
    lattice: Lattice, weights: Mapping[str, float], into: str = "lm", keep: Sequence[str] = ("am",)
) -> Lattice:
    """Return the lattice with scores `keep` and `into`, whose plain sum, the weighted total over
    the weight of the first of `keep` (above 0), ranks paths as the weights say. Arcs that a kept
    score makes impossible have 0. UserError for other weights and unknown names.
    """
    unit = weights.get(keep[0], 0.0) if keep else 1.0
    if unit <= 0 or into in keep:
        raise UserError(
            f"{lattice.utt}: scores can be folded into {into!r} only where {keep[0]!r} stays apart"
            " with a weight above 0; change the weights, or write slf"
        )
    if missing := [name for name in keep if name not in lattice.scores]:
        raise UserError(
            f"{lattice.utt}: no score {missing[0]!r} in the lattice; keep some of:"
            f" {', '.join(lattice.scores)}"
        )
    sides = zip((lattice.scores, lattice.final_scores), total(lattice, weights), strict=True)
    arcs, finals = (merge_columns(columns, sums / unit, into, keep) for columns, sums in sides)
    return replace(lattice, scores=arcs, final_scores=finals)


def merge_columns(
    columns: Mapping[str, np.ndarray], sums: np.ndarray, into: str, keep: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return the kept columns, and what they lack of `sums` (N,)."""
    kept = {name: columns[name] for name in keep}
    there = np.sum([np.zeros(len(sums)), *kept.values()], axis=0)
    possible = there > -np.inf
    return {**kept, into: np.where(possible, sums - np.where(possible, there, 0.0), 0.0)}


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
