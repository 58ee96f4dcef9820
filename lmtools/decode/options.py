"""Options of a recogniser, `--opts key=value`: a dataclass with an explanation of each field."""

import dataclasses
import typing
from collections.abc import Sequence

from lmtools.base.config import check_numbers
from lmtools.base.errors import UserError
from lmtools.base.grammar import parse_pairs


def option(default, help_text: str, choices: Sequence[str] = ()):
    """Return a field of such a dataclass; any value where there are no `choices`."""
    return dataclasses.field(default=default, metadata={"about": help_text, "choices": choices})


def parse_options(cls, assignments: Sequence[str], name: str):
    """Return the options `cls` of the recogniser `name` that `key=value` assignments say;
    UserError, with those that there are, for a wrong one.
    """
    kinds = typing.get_type_hints(cls)
    has = f"{name} has {', '.join(kinds)}"
    values = {}
    for key, value in parse_pairs(assignments, "--opts", "key=value", has).items():
        if key not in kinds:
            raise UserError(f"--opts {key}={value}: no option is called {key!r}; {has}")
        try:
            values[key] = kinds[key](value)
        except ValueError:
            kind = "a whole number" if kinds[key] is int else "a number"
            raise UserError(f"--opts {key}={value}: not {kind}; correct it") from None
        choices = cls.__dataclass_fields__[key].metadata["choices"]
        if choices and value not in choices:
            raise UserError(f"--opts {key}={value}: no such choice; give {' or '.join(choices)}")
    options = cls(**values)
    check_numbers(options, "--opts ", *(key for key in kinds if kinds[key] is int))
    return options


def describe_options(cls) -> str:
    """Return name, meaning, default or choices of each option, for a verb's help."""
    fields = [(each, each.metadata) for each in dataclasses.fields(cls)]
    return "; ".join(
        f"{field.name}: {more['about']} ({'|'.join(more['choices']) or field.default})"
        for field, more in fields
    )
