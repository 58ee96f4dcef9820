"""The numbers and names that options take, each a type for argparse, which tells in one line why a
value is refused.
"""

import argparse
import math
import sys
from collections.abc import Callable
from typing import Any

from lmtools.base.computing import Shard
from lmtools.base.context import parse_size
from lmtools.base.errors import UserError
from lmtools.text.unify import unifier


def told(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a type for argparse, which keeps the message of what `parse` refuses."""

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except (UserError, ValueError) as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def number(kind: type, what: str, low: float = -math.inf, high: float = math.inf):
    """Return the type of finite numbers, int or float, from `low` to `high`, named `what`."""

    def parse(text: str):
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high or value in (math.inf, -math.inf):
            raise ValueError(f"{text[:40]!r} is not {what}")
        return value

    return told(parse)


positive = number(int, "a whole number from 1", 1, sys.maxsize)
from_zero = number(int, "a whole number from 0", 0, sys.maxsize)
seed = number(int, f"a whole number from 0 to {2**32 - 1}", 0, 2**32 - 1)
weight, amount = number(float, "a finite number"), number(float, "a finite number from 0", 0)
share = number(float, "a number from 0 to 1", 0, 1)
size, shard = told(parse_size), told(Shard.parse)


@told
def named(text: str) -> tuple[str, float]:
    name, sign, value = text.rpartition("=")
    if not (name and sign):
        raise ValueError(f"{text[:40]!r}: write NAME=NUMBER")
    return name, weight(value)


def layers(text: str) -> str | tuple[int, ...]:
    """Parse whole numbers from 0 with commas between them; `last` and `all` stay as they are."""
    return text if text in ("last", "all") else tuple(map(from_zero, text.split(",")))


@told
def forms(text: str) -> tuple[str, ...]:
    """Parse names of `text.unify.UNIFIERS` with commas between them."""
    unifier(names := tuple(text.split(",")))
    return names


@told
def folds(text: str) -> str:
    """Parse a number of folds from 2, or whom they are by."""
    from lmtools.rescoring.folds import parse_folds

    parse_folds(text)
    return text


@told
def metric(text: str) -> str:
    """Parse a metric, NAME or NAME:option=value,..., and return its one name."""
    from lmtools.evaluate.metrics import find_metric  # as above

    return find_metric(text)[0]
