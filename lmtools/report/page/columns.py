"""Columns of printed figures, of which tables are made."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lmtools.report.page.table import NONE, Table


@dataclass(frozen=True)
class Column:
    """A column of a table: printed cells, which of them are to be stressed, and whether a paper
    reports them.
    """

    header: str
    cells: Sequence[str]
    best: frozenset[int] = frozenset()
    quoted: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether nobody has anything in it."""
        return all(cell == NONE for cell in self.cells)


def figures(header: str, values: Sequence[float | None], digits: int = 2, sign: int = 0) -> Column:
    """Return a column of numbers; with `sign` 1 the lowest are stressed, with -1 the highest."""
    cells = [decimal(value, digits) for value in values]
    known = [
        (sign * value, cell) for value, cell in zip(values, cells, strict=True) if cell != NONE
    ]
    best = min(known)[1] if known and sign else None
    return Column(header, cells, frozenset(i for i, cell in enumerate(cells) if cell == best))


def table_of(
    title: str,
    columns: Iterable[Column],
    notes: Iterable[str] = (),
    *,
    part: str = "tables",
    left: int = 1,
    full: bool = False,
) -> Table:
    """Return a table of columns, the first `left` of which hold text; without those that nobody has
    anything in, unless it is to be `full`.
    """
    every = list(columns)
    used = [column for i, column in enumerate(every) if full or i == 0 or not column.is_empty]
    return Table(
        title,
        tuple(column.header for column in used),
        tuple(zip(*(column.cells for column in used), strict=True)),
        tuple(notes),
        left=sum(column in used for column in every[:left]),
        best=frozenset((i, j) for j, column in enumerate(used) for i in column.best),
        part=part,
        quoted=frozenset(j for j, column in enumerate(used) if column.quoted),
    )


def places(value: float) -> int:
    """Return the number of decimals of a printed perplexity."""
    return 2 if value < 100 else 1 if value < 1000 else 0


def decimal(value: float | None, digits: int = 2) -> str:
    """Return a number with thousands separators, or a dash."""
    return NONE if value is None or not np.isfinite(value) else f"{value:,.{digits}f}"


def probability(p: float | None) -> str:
    """Return a probability with three decimals, or a dash."""
    return NONE if p is None else "<0.001" if p < 0.0005 else f"{p:.3f}"


def ratio(value: float | None, reference: float | None) -> float | None:
    """Return `value` by `reference`, where both are there."""
    return value / reference if value is not None and reference else None
