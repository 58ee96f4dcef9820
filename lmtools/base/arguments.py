"""Arguments of the Python interface: each check names the argument and the place of the value that
does not fit, `texts[2]: nan (float) is no text; ...`.
"""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral

from lmtools.base.errors import UserError

# What to do about something else in the place of a text, by its type.
REMEDIES: dict[type | tuple, str] = {
    (bytes, bytearray): "decode it: text.decode()",
    (list, tuple): "join its words: ' '.join(words)",
    (Integral,): "write str(...)",
}
LEAST = -(2**63)
EMPTY_CELL = "an empty text is '' (in pandas: fillna(''))"


def mismatch(value, where: str, what: str, remedy: str = "") -> UserError:
    """Return the error of a value that is not `what` (`a text`, ...)."""
    try:
        shown = f"{value!r:.60}"
    except Exception:
        shown = "what cannot be shown"
    kind = f" ({type(value).__name__})" if value is not None else ""
    return UserError(f"{where}: {shown}{kind} is not {what}" + (f"; {remedy}" if remedy else ""))


def check_text(value, where: str) -> str:
    """Return `value` if it is a str; UserError otherwise."""
    if type(value) is str:
        return value
    if isinstance(value, str):  # NumPy's, for one
        return str(value)
    remedies = (remedy for kinds, remedy in REMEDIES.items() if isinstance(value, kinds))
    raise mismatch(value, where, "a text", next(remedies, EMPTY_CELL))


def list_items(values, name: str, what: str = "texts") -> list:
    """Return the items of a sequence or another iterable; UserError for one text, a set, a table,
    and a mapping (its keys are meant where it has no values, as of dict.fromkeys).
    """
    remedy = f"give a list of {what}"
    if isinstance(values, str | bytes | bytearray):
        raise UserError(f"{name}: one text alone; write [text]")
    valued = isinstance(values, Mapping) and any(value is not None for value in values.values())
    if valued or isinstance(values, set | frozenset) or getattr(values, "ndim", 1) != 1:
        raise mismatch(values, name, f"a sequence of {what}", remedy)
    try:
        return list(values)
    except TypeError:
        raise mismatch(values, name, f"a sequence of {what}", remedy) from None


def list_texts(values, name: str) -> list[str]:
    """Return the texts of a sequence or another iterable."""
    return [
        check_text(value, f"{name}[{place}]")
        for place, value in enumerate(list_items(values, name))
    ]


def check_kind(value, kinds: type | tuple[type, ...], where: str, what: str, remedy: str = ""):
    """Return `value` if it is of one of these types; UserError otherwise."""
    if not isinstance(value, kinds):
        raise mismatch(value, where, what, remedy)
    return value


def check_mapping(value, where: str, what: str) -> Mapping:
    """Return `value` if it is a mapping whose keys are texts; UserError otherwise."""
    check_kind(value, Mapping, where, what)
    for key in value:
        check_text(key, f"{where}: key {key!r:.40}")
    return value


def check_number(value, where: str, low: float = -math.inf, finite: bool = True) -> float:
    """Return `value` as a number from `low`, finite where it must be; UserError otherwise."""
    what = "a finite number" if finite else "a number"
    what += "" if low == -math.inf else f" from {low:g}"
    if isinstance(value, str | bytes | bool):
        raise mismatch(value, where, what)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise mismatch(value, where, what) from None
    if number < low or (finite and not math.isfinite(number)):
        raise mismatch(value, where, what)
    return number


def check_numbers(values, name: str) -> list[float]:
    """Return the numbers of a sequence or another iterable; they may be NaN or infinite."""
    return [
        check_number(value, f"{name}[{place}]", finite=False)
        for place, value in enumerate(list_items(values, name, "numbers"))
    ]


def check_whole(value, where: str, low: int = LEAST) -> int:
    """Return `value` if it is a whole number of 64 bits from `low`; UserError otherwise."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not low <= value < -LEAST:
        raise mismatch(value, where, "a whole number" + (f" from {low}" if low > LEAST else ""))
    return int(value)


def check_path(value, name: str):
    """Return `value` if it can name a file; UserError otherwise."""
    check_kind(value, (str, os.PathLike), name, "a path")
    try:
        named = value != "" and "\0" not in os.fsdecode(os.fsencode(value))
    except UnicodeEncodeError:
        named = False
    if not named:
        raise mismatch(value, name, "the name of a file")
    return value


def check_among(value, name: str, known: Iterable[str]) -> str:
    """Return `value` if it is one of `known`; UserError otherwise."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        raise UserError(f"{name!r} is {value!r:.40}, not one of {', '.join(names)}")
    return value


def list_names(names: Sequence[str] | None, name: str) -> list[str] | None:
    """Return the names in a sequence; None stays None."""
    if names is None:
        return None
    items = list_items(names, name, "names")
    return [check_text(one, f"{name}[{place}]") for place, one in enumerate(items)]


def map_numbers(values: Mapping[str, float] | None, name: str) -> dict[str, float]:
    """Return finite numbers by name; None is none."""
    given = check_mapping({} if values is None else values, name, "a mapping of names to numbers")
    return {key: check_number(value, f"{name}[{key!r}]") for key, value in given.items()}
