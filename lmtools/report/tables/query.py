"""Columns of tables out of rows, for the names that a table lists."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lmtools.report.page.table import NONE, Column, figures
from lmtools.report.rows import FigureRow, FigureRows


class Query(NamedTuple):
    """FigureRows of one kind under `names`, on `places` beside these where they have a set each."""

    rows: FigureRows
    kind: str
    names: Sequence[str]
    places: Sequence[str] | None = None

    def find(
        self, quantity: str, place: str = "", at: float | None = None
    ) -> list[FigureRow | None]:
        """Return the row of a quantity under each name; None where it was not measured."""
        places = self.places or [place] * len(self.names)
        pairs = zip(self.names, places, strict=True)
        return [self.rows.find(self.kind, name, quantity, on, at=at) for name, on in pairs]

    def values(self, quantity: str, place: str = "", at=None) -> list[float | None]:
        """Return the value of a quantity under each name."""
        return [row and row.value for row in self.find(quantity, place, at)]

    def column(
        self,
        header: str,
        quantity: str,
        place: str = "",
        *,
        digits: int = 2,
        sign: int = 0,
        at=None,
    ) -> Column:
        """Return the column of a quantity; see `figures`."""
        return figures(header, self.values(quantity, place, at), digits, sign)

    def printed(
        self, header: str, show: Callable[[FigureRow], str], quantity: str, place: str = ""
    ) -> Column:
        """Return a column of cells that show rows in their own way."""
        rows = self.find(quantity, place)
        return Column(header, [NONE if row is None else show(row) for row in rows])

    def columns(self, specs: Mapping[str, tuple[str, int]], place: str = "") -> list[Column]:
        """Return columns of quantities and decimals, by header."""
        return [
            self.column(header, quantity, place, digits=digits)
            for header, (quantity, digits) in specs.items()
        ]


def show_interval(row: FigureRow | None, between: str = "-") -> str:
    """Return the 95% interval in a cell, a hyphen between ends that are never negative."""
    known = row is not None and row.low is not None
    return f"{row.low:.2f}{between}{row.high:.2f}" if known else NONE


def text_column(header: str, values: Sequence) -> Column:
    """Return a column of text; a dash where there is none."""
    return Column(header, [NONE if value is None else str(value) for value in values])


def numbers(header: str, values: Sequence[float | None], form: str) -> Column:
    """Return a column of numbers in a form such as `{:.4g}`."""
    return Column(header, [NONE if value is None else form.format(value) for value in values])
