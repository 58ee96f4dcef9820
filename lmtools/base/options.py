"""Options declared once, as fields of dataclasses, with their help and what they take: flags of the
command line, keywords in Python and `name=value` in texts all come from the declaration.
"""

import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, TypeVar

from lmtools.base.errors import UserError
from lmtools.base.grammar import (
    check_among,
    check_number,
    check_path,
    check_text,
    check_whole,
    list_items,
    map_numbers,
)

OPTION = "option"  # the key of a field's metadata


class Option(NamedTuple):
    """Declaration of an option beside its name, type and default: its help, how --help writes its
    value, the values that it takes (`choices`, or numbers from `least`), whether only --help-all
    shows it, whether it is a path.
    """

    help: str
    metavar: str | None = None
    choices: Collection[str] | None = None
    least: float | None = None
    rare: bool = False
    path: bool = False


def option(default, help: str, **more) -> Any:
    """Declare an option as a dataclass field; `more` are other fields of Option."""
    return dataclasses.field(default=default, metadata={OPTION: Option(help, **more)})


@functools.cache
def list_options(kind: type) -> dict[str, tuple[type, Any, Option]]:
    """Return the declared options of a dataclass by name: type, default, declaration."""
    hints = typing.get_type_hints(kind)
    return {
        field.name: (strip_none(hints[field.name]), field.default, field.metadata[OPTION])
        for field in dataclasses.fields(kind)
        if OPTION in field.metadata
    }


def strip_none(hint) -> type:
    """Return the type of a hint `X | None`; the hint of several types as it is."""
    parts = [part for part in typing.get_args(hint) if part is not types.NoneType]
    return parts[0] if isinstance(hint, types.UnionType) and len(parts) == 1 else hint


def check_options(instance) -> None:
    """Raise UserError for a declared option whose value is none that it takes."""
    for name, (kind, default, declared) in list_options(type(instance)).items():
        value = getattr(instance, name)
        if value is None and default is None:
            continue
        if kind == dict[str, float]:
            map_numbers(value, name)
        elif typing.get_origin(kind) is list:
            for place, item in enumerate(list_items(value, name, "values")):
                check_value(item, f"{name}[{place}]", typing.get_args(kind)[0], declared)
                if declared.choices:
                    check_among(item, name, declared.choices)
        elif declared.choices:
            check_among(check_text(value, name), name, declared.choices)
        elif declared.path:
            check_path(value, name)
        elif kind in CHECKS:
            check_value(value, name, kind, declared)


CHECKS = {int: check_whole, float: check_number, str: check_text}


def check_value(value, name: str, kind: type, declared: Option) -> None:
    """Raise UserError for what is no number or text that a declared option takes."""
    CHECKS[kind](value, name, *([] if declared.least is None else [kind(declared.least)]))


def parse_option(kind: type, name: str, text: str):
    """Parse the value of a declared option from text; UserError for what is none."""
    wanted = list_options(kind)[name][0]
    try:
        if wanted is bool:
            return {"true": True, "false": False}[text]
        if wanted in (int, float):
            return wanted(text)
        if typing.get_origin(wanted) is list:
            return [typing.get_args(wanted)[0](word) for word in text.split(",") if word]
    except (KeyError, ValueError):
        example = "true" if wanted is bool else "7"
        what = "neither true nor false" if wanted is bool else "no number"
        raise UserError(f"{name}={text}: is {what}; write for instance {name}={example}") from None
    return text


def build_keywords(kind: type, options: Mapping, function: str, *more: str) -> dict[str, Any]:
    """Return keyword arguments that are declared options or among `more`; TypeError for others."""
    for name in options:
        if name not in (*list_options(kind), *more):
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
    return dict(options)


def describe_keywords(function, *kinds: type) -> None:
    """Show the declared options of dataclasses in a function's signature, for `**options`."""
    signature = inspect.signature(function)
    named = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    listed = {name: row for kind in kinds for name, row in list_options(kind).items()}
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        for name, (hint, default, _) in listed.items()
        if name not in signature.parameters
    ]
    function.__signature__ = signature.replace(parameters=[*named, *more])


Kind = TypeVar("Kind")


def fill(kind: type[Kind], values, **more) -> Kind:
    """Make a dataclass of the values of its declared options in `values`, and of `more`."""
    given = values if isinstance(values, Mapping) else vars(values)
    return kind(**{name: given[name] for name in list_options(kind) if name in given} | more)
