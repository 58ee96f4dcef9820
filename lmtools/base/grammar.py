"""The one grammar of what files and lines hold: a type says it, msgspec checks it, and what does
not fit is one line that names the place, the value and what to write instead.
"""

import copyreg
import difflib
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lmtools.base.errors import UserError

EMPTY: Mapping = MappingProxyType({})
PLAIN = frozenset({dict, MappingProxyType})  # mappings that are not looked into


def read_only(values: Mapping) -> Mapping:
    """Return a view of `values` that cannot be written to."""
    return MappingProxyType(values)


# values with EMPTY in them go to other processes
copyreg.pickle(MappingProxyType, lambda view: (read_only, (dict(view),)))

LARGEST = 1.7976931348623157e308
Finite = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]  # what NaN is not, either
Amount = Annotated[float, Meta(ge=0, le=LARGEST)]
Positive = Annotated[float, Meta(gt=0, le=LARGEST)]
Whole = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1, lt=2**31)]
Share = Annotated[float, Meta(ge=0, lt=1)]

WORDS = {
    "str": "a text",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a finite number",
}
GOT = {str: "str", list: "array", dict: "object", bool: "bool", int: "int", float: "float"}
FAULT = re.compile(
    r"(?P<what>.*?)(, got `(?P<got>\w+)`)?( - at (`key` in )?`\$(?P<path>.*)`)?", re.S
)
STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
SURROGATE = re.compile("[\ud800-\udfff]")


def parse_json(text: str, where: str, remedy: str = "write one utterance a line"):
    """Parse a JSON value; UserError for what is none, and for keys that come twice."""
    try:
        return json.loads(text, object_pairs_hook=refuse_twice)
    except RecursionError:
        raise UserError(f"{where}: nested too deeply; {remedy}") from None
    except ValueError as error:
        cut = "Unterminated" in str(error) or f"char {len(text.rstrip())})" in str(error)
        remedy = "it is cut off: copy or write the file again" if cut else remedy
        raise UserError(f"{where}: not JSON ({error}); {remedy}") from None


def refuse_twice(pairs: list[tuple]) -> dict:
    """Return the object of `pairs`; ValueError if a key comes twice."""
    tree = dict(pairs)
    if len(tree) < len(pairs):
        raise ValueError("a key occurs twice in one object")
    return tree


def fit(
    tree, kind, where, titles: Mapping[str, str] = EMPTY, whole="it", remedy: str | None = None
) -> Any:
    """Return the plain values `tree` as a value of the type `kind`; UserError about `where` for the
    first part that does not fit. `titles` say what an entry of a list or mapping is called
    (`hyps`: hypothesis), `whole` what all of it is; `remedy` stands in place of the usual one.
    """
    try:
        return msgspec.convert(tree, kind)
    except UnicodeError:  # of half a surrogate pair, in a key too
        check_texts(tree, where, titles)
        raise
    except msgspec.ValidationError as error:
        told = FAULT.fullmatch(str(error))
        path = [name or place for name, place in STEP.findall(told["path"] or "")]
        found = list(list_places(tree, path))
        wrong = (place for place in found if may_be_wrong(place[1], told["got"]))
        steps, value = next(wrong, found[0])
        place, subject = name_place(steps, titles, whole)
        name = told["what"].rpartition("field `")[2].rstrip("`")
        if "unknown field" in told["what"]:
            types = list_types(kind, steps)
            known = [field.encode_name for one in types for field in getattr(one, "fields", ())]
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}:"
            cause, usual = f"unknown key {clip_value(name)}", f"{hint} rename it or drop it"
        elif "missing required" in told["what"]:
            place, missing = name_place([*steps, name], titles, whole)
            cause, usual = f"key {missing} is missing", "add it"
        else:
            cause = f"{subject} is {clip_value(value)}"
            wanted = spell_expected(told["what"])
            if "enum" in told["what"]:
                types = list_types(kind, steps)
                choices = [one for each in types for one in getattr(each, "values", ())]
                wanted = f"one of {', '.join(map(str, choices))}"
            usual = f"expected {wanted}"
            if remedy:
                cause, usual = f"{cause}, {usual}", remedy
        raise UserError(f"{where}: {place}{cause}; {remedy or usual}") from None


def list_places(tree, steps: list[str]) -> Iterator[tuple[list, Any]]:
    """Yield place and value of each part at msgspec's path, which leaves names of entries out."""
    if not steps:
        yield [], tree
    elif isinstance(tree, list):
        first = int(steps[0])
        yield from (([first, *rest], one) for rest, one in list_places(tree[first], steps[1:]))
    elif isinstance(tree, dict):
        for name in tree if steps[0] == "..." else steps[:1]:
            inner = list_places(tree[name], steps[1:])
            yield from (([name, *rest], value) for rest, value in inner)


def may_be_wrong(value, got: str | None) -> bool:
    """Return whether msgspec may have complained of a value: what it `got`, or out of bounds."""
    if got:
        return GOT.get(type(value), "null") == got
    return not isinstance(value, int | float) or not 0 < value <= LARGEST


def name_place(steps: list, titles: Mapping[str, str], whole: str) -> tuple[str, str]:
    """Return what stands before the message, `hypothesis 2: `, and the subject of it, `'text'`."""
    place, names, before = "", [], None
    for step in steps:
        if isinstance(step, int) and before in titles:
            place, names = f"{place}{titles[before]} {step + 1}: ", []
        elif isinstance(step, int):
            names[-1:] = [f"{names[-1] if names else ''}[{step}]"]
        elif before in titles:
            names[-1] = f"{titles[before]} {step!a}"
        else:
            names.append(step)
        before = step
    subject = names[-1] if steps and " " in str(names[-1:]) else repr(".".join(map(str, names)))
    return place, subject if names else ("it" if steps else whole)


def list_types(kind, steps: list) -> list:
    """Return the types that the part of a value of the type `kind` at a path may have."""
    from msgspec import inspect

    types = [inspect.type_info(kind)]
    for step in (*steps, None):
        types = [inner for one in types for inner in getattr(one, "types", (one,))]
        if step is not None:
            types = [inner for one in types for inner in step_into(one, step)]
    return types


def step_into(kind, step) -> list:
    """Return the types of what stands at a key or place of a type."""
    fields = {field.encode_name: field.type for field in getattr(kind, "fields", ())}
    inner = [fields.get(step), getattr(kind, "item_type", None), getattr(kind, "value_type", None)]
    return [one for one in inner if one is not None]


def spell_expected(what: str) -> str:
    if not (kinds := re.findall(r"`([^`]+)`", what)):
        return "a finite number" if "Number out of range" in what else what
    named = [WORDS.get(name, name) for name in kinds[0].split(" | ")]
    text = ", ".join(named[:-1]) + " or " * (len(named) > 1) + named[-1]
    bound = re.search(r"(?<!length )(>=|>) (-?[\d.]+)$", what)
    if bound and float(bound[2]) >= 0:
        least = f"{float(bound[2]):g}"
        text += f", {least} or more" if bound[1] == ">=" else f" above {least}"
    length = re.search(r"of length (>=)? ?(\d+)", what)
    return f"{text} of {length[2]}{' or more' * bool(length[1])}" if length else text


def check_texts(tree, where: str, titles: Mapping[str, str] = EMPTY) -> None:
    """Raise UserError for a text, among plain values, that UTF-8 cannot hold."""
    waiting: list[tuple[list, Any]] = [([], tree)]
    while waiting:
        steps, value = waiting.pop()
        if isinstance(value, dict | list):
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            waiting += [([*steps, step], one) for step, one in pairs]
            waiting += [(steps, key) for key in value if isinstance(value, dict)]
        elif isinstance(value, str) and SURROGATE.search(value):
            encodable(value, f"{where}: {name_place(steps, titles, '')[0]}".removesuffix(": "))


def encodable(text: str, where: str) -> str:
    """Return `text` if UTF-8 can hold it; UserError for half a surrogate pair, as in JSON."""
    if SURROGATE.search(text):
        raise UserError(
            f"{where}: {text!a} holds half a surrogate pair; write the file as UTF-8 again"
        )
    return text


def clip_value(value, limit: int = 40) -> str:
    """Return a short one-line picture of a wrong value."""
    text = ascii(value) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= limit else text[:limit] + "..."


EXAMPLE = "give a name and what it means"


def parse_pair(
    text: str, option: str = "", form: str = "NAME=VALUE", remedy: str = EXAMPLE, empty=False
) -> tuple[str, str]:
    """Split `text` at the first `=`; UserError, with the `form` that it should have, otherwise."""
    name, sign, value = text.partition("=")
    if name and sign and (value or empty):
        return name, value
    raise UserError(f"{option} {text}: not {form}; {remedy}".lstrip())


def parse_pairs(
    texts: Iterable[str], option: str, form="NAME=VALUE", remedy: str = EXAMPLE, empty=False
) -> dict[str, str]:
    """Return the values of all by name; UserError for a name that comes twice too."""
    values: dict[str, str] = {}
    for text in texts:
        name, value = parse_pair(text, option, form, remedy, empty=empty)
        if name in values:
            raise UserError(
                f"{option} {text}: a second one called {name!r}; give each its own name"
            )
        values[name] = value
    return values


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


def map_numbers(values: Mapping[str, float] | None, name: str) -> dict[str, float]:
    """Return finite numbers by name; None is none."""
    given = check_mapping({} if values is None else values, name, "a mapping of names to numbers")
    return {key: check_number(value, f"{name}[{key!r}]") for key, value in given.items()}
