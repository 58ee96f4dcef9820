"""The verbs of the command line, one module each, and the options that several of them have."""

import sys
from collections.abc import Iterable


def say(lines: Iterable[str]) -> None:
    """Print messages on standard error."""
    for line in lines:
        print(line, file=sys.stderr)
