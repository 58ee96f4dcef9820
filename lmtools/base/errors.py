"""The one exception that a user's mistake raises, and how it is said."""

import contextlib
import sys
from collections.abc import Iterator

LONGEST = 500  # characters of a message


class UserError(Exception):
    """The user's input is wrong; the message is one line `path:line: cause; remedy`.

    The command line prints it on standard error and exits with status 1; nothing is half-written.
    """


@contextlib.contextmanager
def exit_with_message() -> Iterator[None]:
    """Tell a UserError of the block of a script in one line, with exit status 1."""
    try:
        yield
    except UserError as error:
        sys.exit(one_line(error))


def one_line(error: Exception) -> str:
    """Return the message in one line of at most LONGEST characters, without its middle if it is
    longer; what would not be seen is escaped.
    """
    return cut(escape(" ".join(cut(str(error)).splitlines())))


def escape(text: str) -> str:
    """Return `text` with what would not be seen, or would move a terminal's cursor, escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def cut(text: str) -> str:
    """Return `text`, or its beginning, which says where, and its end, which says what to do."""
    if len(text) <= LONGEST:
        return text
    half = (LONGEST - len(" ... ")) // 2
    return f"{text[:half]} ... {text[-half:]}"
