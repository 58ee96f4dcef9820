"""What the benchmarks' commands share."""

from lmtools.errors import UserError
from lmtools.seal import write_json


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
        write_json(figures, path)
