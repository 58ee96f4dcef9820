"""What the benchmarks' commands share."""

import json

from lmtools.errors import UserError
from lmtools.files import atomic_text


def named(pairs: list[str]) -> dict[str, str]:
    """`NAME=DIR` arguments as a dict; UserError for one without a name."""
    lms = dict(pair.partition("=")[::2] for pair in pairs)
    for name, directory in lms.items():
        if not directory:
            raise UserError(f"--lm {name}: not NAME=DIR; give a name, as in --lm tta=exp/lm/tta")
    return lms


def save(figures: dict, path: str | None) -> None:
    """Write `figures` as JSON, if there is a path."""
    if path:
        with atomic_text(path) as stream:
            stream.write(json.dumps(figures, indent=1) + "\n")
