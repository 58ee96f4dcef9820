"""The numbers and names that options take, each a type for argparse: what is none is wrong usage,
told in one line.
"""

import argparse
import math
import sys
from collections.abc import Callable
from typing import TypeVar

from lmtools.base.computing import Shard
from lmtools.base.context import parse_size
from lmtools.base.errors import UserError
from lmtools.text.unify import unifier

Value = TypeVar("Value")


def told(parse: Callable[[str], Value]) -> Callable[[str], Value]:
    """Return a type for argparse, which keeps the message of what `parse` refuses."""

    def convert(text: str) -> Value:
        try:
            return parse(text)
        except (UserError, ValueError) as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def whole(low: int, high: int = sys.maxsize) -> Callable[[str], int]:
    """Return the type of whole numbers from `low` to `high`."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            most = f" to {high}" if high < sys.maxsize else ""
            raise ValueError(f"{text[:40]!r} is not a whole number from {low}{most}")
        return value

    return told(parse)


def number(what: str, low: float = -math.inf, high: float = math.inf) -> Callable[[str], float]:
    """Return the type of finite numbers from `low` to `high`, which messages call `what`."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise ValueError(f"{text[:40]!r} is not a finite number")
        if not low <= value <= high:
            raise ValueError(f"{text[:40]!r} is not {what}")
        return value

    return told(parse)


positive, from_zero, seed = whole(1), whole(0), whole(0, 2**32 - 1)
weight, amount = number("a finite number"), number("a number from 0", 0)
share = number("a number from 0 to 1", 0, 1)
size, shard = told(parse_size), told(Shard.parse)


def margin(text: str) -> float:
    """Parse a number from 0, or inf."""
    return math.inf if text == "inf" else amount(text)


@told
def named(text: str) -> tuple[str, float]:
    """Parse NAME=NUMBER."""
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
    names = tuple(text.split(","))
    unifier(names)
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
