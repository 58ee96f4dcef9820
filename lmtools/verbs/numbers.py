"""The numbers and names that options take, each a type for argparse: what is none is wrong usage,
told in one line.
"""

import argparse
import math
import sys

from lmtools.base.computing import Shard
from lmtools.base.context import parse_size
from lmtools.base.errors import UserError
from lmtools.text.unify import unifier


def whole(text: str, low: int, high: int = sys.maxsize) -> int:
    """Parse a whole number from `low` to `high`."""
    try:
        value = int(text)
    except ValueError:
        value = None
    if value is None or not low <= value <= high:
        most = f" to {high}" if high < sys.maxsize else ""
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number from {low}{most}")
    return value


def positive(text: str) -> int:
    """Parse a whole number from 1."""
    return whole(text, 1)


def from_zero(text: str) -> int:
    """Parse a whole number from 0."""
    return whole(text, 0)


def seed(text: str) -> int:
    """Parse what random draws start from."""
    return whole(text, 0, 2**32 - 1)


def weight(text: str) -> float:
    """Parse a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a finite number")
    return value


def amount(text: str) -> float:
    """Parse a finite number from 0: a width, a scale, a tolerance, seconds."""
    value = weight(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from 0")
    return value


def margin(text: str) -> float:
    """Parse a number from 0, or inf."""
    return math.inf if text == "inf" else amount(text)


def share(text: str) -> float:
    """Parse a number from 0 to 1."""
    value = amount(text)
    if value > 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from 0 to 1")
    return value


def named(text: str) -> tuple[str, float]:
    """Parse NAME=NUMBER."""
    name, sign, value = text.rpartition("=")
    if not (name and sign):
        raise argparse.ArgumentTypeError(f"{text[:40]!r}: write NAME=NUMBER")
    return name, weight(value)


def size(text: str) -> int:
    """Parse a number of bytes, as 500000, 64K, 16M or 2G."""
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def layers(text: str) -> str | tuple[int, ...]:
    """Parse whole numbers from 0 with commas between them; `last` and `all` stay as they are."""
    return text if text in ("last", "all") else tuple(map(from_zero, text.split(",")))


def forms(text: str) -> tuple[str, ...]:
    """Parse names of `text.unify.UNIFIERS` with commas between them."""
    names = tuple(text.split(","))
    try:
        unifier(names)
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return names


def folds(text: str) -> str:
    """Parse a number of folds from 2, or whom they are by."""
    from lmtools.rescoring import parse_folds  # half a second that every other verb would pay

    try:
        parse_folds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def metric(text: str) -> str:
    """Parse a metric, NAME or NAME:option=value,..., and return its one name."""
    from lmtools.evaluate.metrics import find_metric  # as above

    try:
        return find_metric(text)[0]
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def shard(text: str) -> Shard:
    """Parse I/N."""
    try:
        return Shard.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
