"""`NAME=VALUE`, as options, settings and specifiers say what a name means."""

from collections.abc import Iterable

from lmtools.base.errors import UserError

EXAMPLE = "give a name and what it means"


def parse_pair(
    text: str, option: str = "", form: str = "NAME=VALUE", remedy: str = EXAMPLE, empty=False
) -> tuple[str, str]:
    """Split `text` at the first `=`; UserError where either side lacks, unless the value may be
    `empty`. `form` says what `text`, after `option`, should look like.
    """
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
        name, value = parse_pair(text, option, form, remedy, empty)
        if name in values:
            raise UserError(
                f"{option} {text}: a second one called {name!r}; give each its own name"
            )
        values[name] = value
    return values
