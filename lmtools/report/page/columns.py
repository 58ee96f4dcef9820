"""Columns of printed figures, of which tables are made that have one row a model."""

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
    first: str,
    names: Sequence[str],
    columns: Iterable[Column],
    notes: Iterable[str],
    part="tables",
    text=0,
) -> Table:
    """Return one row a model under its printed name, without the columns that nobody has anything
    in; the first `text` of `columns` hold text.
    """
    every = list(columns)
    used = [column for column in every if any(cell != NONE for cell in column.cells)]
    left = 1 + sum(column in used for column in every[:text])
    rows = tuple(zip(names, *(column.cells for column in used), strict=True))
    best = frozenset((i, 1 + j) for j, column in enumerate(used) for i in column.best)
    header = (first, *(column.header for column in used))
    quoted = frozenset(1 + j for j, column in enumerate(used) if column.quoted)
    return Table(title, header, rows, tuple(notes), left, best, part, quoted)


def places(value: float) -> int:
    """Return the number of decimals of a printed perplexity."""
    return 2 if value < 100 else 1 if value < 1000 else 0


def decimal(value: float | None, digits: int = 2) -> str:
    """Return a number with thousands separators, or a dash."""
    return NONE if value is None or not np.isfinite(value) else f"{value:,.{digits}f}"


def probability(p: float) -> str:
    """Return a probability with three decimals."""
    return "<0.001" if p < 0.0005 else f"{p:.3f}"
