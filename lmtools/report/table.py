"""Tables: columns of numbers out of rows, Markdown, plain text and HTML."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

import numpy as np

from lmtools.report.rows import FigureRow, FigureRows

NONE = "-"  # in cells without a value
DENSE = 12  # columns that the page has room for at its usual spacing
TAG, ENTITY = re.compile(r"<(?=[a-zA-Z/!?])"), re.compile(r"&(?=[a-zA-Z#])")


@dataclass(frozen=True)
class Table:
    """Printed cells under a title: `left` columns aligned so, `best` cells to stress, `quoted`
    columns in brackets that a paper reports, on the `part` of the page.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    left: int = 1
    best: frozenset[tuple[int, int]] = frozenset()
    part: str = "tables"
    quoted: frozenset[int] = frozenset()

    def printed(self) -> list[list[str]]:
        """Return the cells row by row, those of quoted columns in brackets."""
        return [
            [f"[{c}]" if j in self.quoted and c != NONE else c for j, c in enumerate(row)]
            for row in self.rows
        ]

    def __post_init__(self):
        assert all(len(row) == len(self.header) for row in self.rows), self.title
        assert not isinstance(self.notes, str), self.title


def markdown(table: Table) -> str:
    """Return the table in Markdown, columns padded so that the source is readable too."""
    bar = "\\|"
    head = [guarded(cell).replace("|", bar) for cell in table.header]
    cells = [[guarded(cell).replace("|", bar) for cell in row] for row in table.printed()]
    cells = [
        [f"**{cell}**" if (i, j) in table.best else cell for j, cell in enumerate(row)]
        for i, row in enumerate(cells)
    ]
    widths = [max(map(len, column), default=0) for column in zip(head, *cells, strict=True)]
    rule = [
        "-" * width if j < table.left else "-" * (width - 1) + ":" for j, width in enumerate(widths)
    ]
    lines = [" | ".join(padded(row, widths, table.left)) for row in (head, rule, *cells)]
    notes = "".join(f"\n{guarded(note)}\n" for note in table.notes)
    return f"## {guarded(table.title)}\n\n" + "".join(f"| {line} |\n" for line in lines) + notes


def guarded(text: str) -> str:
    """Return `text` with what means something to Markdown or HTML escaped, but for `code`."""
    parts = text.split("`")
    parts[::2] = [TAG.sub("&lt;", ENTITY.sub("&amp;", p)).replace("*", "\\*") for p in parts[::2]]
    return "`".join(parts)


def padded(cells, widths, left: int) -> list[str]:
    return [
        cell.ljust(width) if j < left else cell.rjust(width)
        for j, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]


def plain(table: Table) -> str:
    rows = [list(table.header), *table.printed()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(padded(row, widths, table.left)).rstrip() for row in rows]
    return "\n".join([table.title, lines[0], "-" * max(map(len, lines)), *lines[1:]]) + "\n"


def html(table: Table) -> str:
    """Return the table as an HTML section that scrolls sideways where the window is narrow."""
    names = [
        ["n"] * (j >= table.left) + ["quoted"] * (j in table.quoted)
        for j in range(len(table.header))
    ]
    kinds = [f' class="{" ".join(each)}"' if each else "" for each in names]
    dense = ' class="dense"' if len(table.header) > DENSE else ""
    head = "".join(
        f'<th scope="col"{kind}>{escape(cell)}</th>'
        for kind, cell in zip(kinds, table.header, strict=True)
    )
    rows = []
    for i, row in enumerate(table.printed()):
        inside = [
            f"<strong>{escape(cell)}</strong>" if (i, j) in table.best else escape(cell)
            for j, cell in enumerate(row)
        ]
        data = "".join(
            f'<td{kind} data-of="{escape(of)}">{cell}</td>'
            for kind, of, cell in zip(kinds[1:], table.header[1:], inside[1:], strict=True)
        )
        rows.append(f'<tr><th scope="row">{inside[0]}</th>{data}</tr>\n')
    notes = "".join(f"<p>{code(note)}</p>" for note in table.notes)
    notes = f'<div class="notes">{notes}</div>\n' if notes else ""
    title = escape(table.title)
    return (
        f'<section class="table">\n<h3>{title}</h3>\n<div class="scroll" role="region"'
        f' aria-label="{title}" tabindex="0">\n'
        f"<table{dense}>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(rows)}</tbody>\n</table>\n</div>\n"
        f"{notes}</section>\n"
    )


def code(text: str) -> str:
    """Return escaped text in which what stands between backticks is code."""
    parts = [escape(part) for part in text.split("`")]
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


@dataclass(frozen=True)
class Column:
    """A column of a table: printed cells, those to be stressed, whether a paper reports them."""

    header: str
    cells: Sequence[str]
    best: frozenset[int] = frozenset()
    quoted: bool = False

    @property
    def is_empty(self) -> bool:
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
    """Return a table of columns, the first `left` text; without empty ones unless `full`."""
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
