"""Scores in the units of other programs: read to natural logarithms, and spelled so that reading
gives the same float again.
"""

import math

from lmtools.base.errors import UserError
from lmtools.formats.checks import number

# One of each in natural logarithms; a bytelog is a logarithm to base 1.0001 divided by 1024, for
# which SRILM takes 1/ln 1.0001 as 10000.5.
BASE2 = math.log(2)
BASE10 = math.log(10)
BYTELOG = 1024 / 10000.5


def parse_in_unit(text: str, unit: float, where: str, what: str) -> float:
    """Parse `text`, a number in `unit`, as a natural logarithm; UserError unless it is finite."""
    value = number(text, where, what) * unit
    if not math.isfinite(value):
        raise UserError(
            f"{where}: {what} is {text!r}, too large to convert; find out what wrote it"
        )
    return value


def spell_in_unit(value: float, unit: float = 1.0) -> str:
    """Spell `value` in units of `unit` as the shortest decimal: exact where a decimal of 17 digits
    can be, and always for a unit of 1.
    """
    quotient = value / unit
    for digits in range(15, 18):
        text = f"{quotient:.{digits}g}"
        if float(text) * unit == value:
            break
    return text
