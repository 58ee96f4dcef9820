"""Settings of a whole call, which reach every part of it: --max-line, --allow-commands.

The command line sets them, and a program does by `with lmtools.using(...)`; a variable of the
environment is the default of --max-line and is read here alone. They are the thread's: one that a
program starts inside the block begins with the defaults, unless it runs in a copy of the context
(contextvars.copy_context, asyncio.to_thread). Worker processes get the settings of the call that
they work for (lmtools.base.workers).
"""

import contextlib
import os
import re
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace

from lmtools.base.errors import UserError

MAX_LINE = "LMTOOLS_MAX_LINE"  # variable of the environment
LONGEST = "16M"  # bytes of a line, unless something else is set
SIZES = "write it as 500000, 64K, 16M or 2G"


@dataclass(frozen=True)
class Context:
    """Settings of a call.

    `max_line`: bytes that a line may have. `allow_commands`: whether lines of script files may run
    commands. `verb`: which verb is called.
    """

    max_line: int = 16 << 20
    allow_commands: bool = False
    verb: str = ""

    def __post_init__(self):
        if type(self.allow_commands) is not bool or type(self.verb) is not str:
            # utils/recipe.py imports this module with the standard library only
            from lmtools.base.grammar import check_kind, check_text

            check_kind(self.allow_commands, bool, "allow_commands", "True or False")
            check_text(self.verb, "verb")
        object.__setattr__(self, "max_line", check_size(self.max_line, "max_line"))


SETTINGS: ContextVar[Context | None] = ContextVar("lmtools", default=None)  # None: the defaults


def current() -> Context:
    """Return the settings of this call; UserError for a variable of the environment with none."""
    if context := SETTINGS.get():
        return context
    return Context(check_size(os.environ.get(MAX_LINE) or LONGEST, MAX_LINE))


@contextlib.contextmanager
def using(
    *,
    max_line: int | str | None = None,
    allow_commands: bool | None = None,
    verb: str | None = None,
) -> Iterator[Context]:
    """Give the calls inside the block these settings of `Context`; None leaves one as it is around
    the block. `max_line` may be text, as 64M. UserError for a value that is none.
    """
    given = {"max_line": max_line, "allow_commands": allow_commands, "verb": verb}
    given = {name: value for name, value in given.items() if value is not None}
    context = replace(current(), **given)
    token = SETTINGS.set(context)
    try:
        yield context
    finally:
        SETTINGS.reset(token)


def check_size(value: int | str, name: str) -> int:
    """Return `parse_size` of a number or text; UserError that names the setting."""
    try:
        return parse_size(str(value))
    except ValueError as error:
        raise UserError(f"{name}: {error}") from None


def parse_size(text: str) -> int:
    """Return the bytes that `500000`, `64K`, `16M` or `2G` means; ValueError for anything else."""
    match = re.fullmatch(r"0*([1-9][0-9]{0,11})([KMG]?)", text.upper(), re.ASCII)
    if not match:
        raise ValueError(f"{text[:40]!r} is no size; {SIZES}")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]
