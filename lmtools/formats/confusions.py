"""Tables of what a recogniser mishears: a head line that names the columns, tabs between them.

`lmtools confusions` writes them, with all columns. Who reads one says which it needs, so that a
table of `heard`, `said` and `count` alone serves where nothing else is asked.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.base.files import read_lines

REMEDY = "give a file that lmtools confusions wrote"


class Confusion(NamedTuple):
    """Words `heard` where others were `said` (either may be empty), `count` times `of` so many in
    which they were heard; in held-out lists it was `right` in so many `tested` places.
    """

    heard: str
    said: str
    count: int
    of: int = 0
    tested: int = 0
    right: int = 0

    @property
    def precision(self) -> float:
        return self.right / self.tested if self.tested else 0.0


COLUMNS = Confusion._fields
PRECISION = "precision"  # a column for the eye: right / tested


def write_confusions(confusions: Iterable[Confusion], path) -> None:
    """Write a table with all columns."""
    with atomic_text(path) as out:
        out.write("\t".join([*COLUMNS, PRECISION]) + "\n")
        for one in confusions:
            precision = f"{one.precision:.4f}" if one.tested else ""
            out.write("\t".join([*map(str, one), precision]) + "\n")


def read_confusions(path, needed: Sequence[str] = COLUMNS) -> list[Confusion]:
    """Read a table that has the columns `needed`, others where it has them; UserError with the line
    of anything else.
    """
    lines = read_lines(path)
    head = next(lines, (1, ""))[1].split("\t")
    if not set(needed) <= set(head):
        raise UserError(f"{path}:1: the head line does not name {', '.join(needed)}; {REMEDY}")
    found = []
    for number, line in lines:
        cells = dict(zip(head, line.split("\t"), strict=False))
        heard, said, *counts = (cells.get(name, "0") for name in COLUMNS)
        whole = all(c.isascii() and c.isdigit() and len(c) < 10 for c in counts)
        if line.count("\t") + 1 != len(head) or not whole:
            raise UserError(f"{path}:{number}: not a confusion; {REMEDY}")
        found.append(Confusion(heard, said, *map(int, counts)))
        if not found[-1].count:
            raise UserError(f"{path}:{number}: the count is not above 0; mend the line")
    return found
