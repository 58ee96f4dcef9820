"""Columns of numbers and texts out of rows that have scores and extras by name, checked."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.grammar import (
    PLAIN,
    check_kind,
    check_mapping,
    check_numbers,
    check_whole,
    list_items,
)

FAR = 1 << 32  # beyond any number of a state


def check_rows(rows: Iterable, kind: type, name: str) -> list:
    """Return rows of a Lattice; UserError for one of another type."""
    rows = list_items(rows, name, kind.__name__)
    for place, row in enumerate(rows):
        where = f"{name}[{place}]"
        check_kind(row, kind, where, kind.__name__)
        if type(row.scores) not in PLAIN or type(row.extra) not in PLAIN:
            check_mapping(row.scores, f"{where}: scores", "a mapping of names to numbers")
            check_mapping(row.extra, f"{where}: extra", "a mapping of names to texts")
    return rows


def integers(values: Sequence, name: str) -> np.ndarray:
    """Return int64 (N,) of numbers of states; UserError for what is none."""
    if any(type(item) is not int or abs(item) > FAR for item in values):
        values = [check_whole(item, f"{name}[{place}]") for place, item in enumerate(values)]
    return np.array(values, dtype=np.int64)


def numbers(values: Sequence, name: str) -> np.ndarray:
    """Return float64 (N,) of scores; UserError for what is no number."""
    plain = type(values) is np.ndarray and values.ndim == 1 and values.dtype.kind in "fiu"
    if not plain and (type(values) is not list or any(type(item) is not float for item in values)):
        values = check_numbers(values, name)
    return np.array(values, dtype=np.float64)


def indices(values, size: int, name: str) -> np.ndarray:
    """Return int64 (N,) of places among `size` rows; UserError for what is none."""
    if type(values) is not np.ndarray or values.ndim != 1 or values.dtype.kind not in "iu":
        items = list_items(values, name, "places")
        values = np.array(integers(items, name), dtype=np.int64)
    if len(wrong := values[(values < 0) | (values >= size)]):
        raise UserError(f"{name}: there is no row {wrong[0]} among {size}; give places from 0")
    return values.astype(np.int64, copy=False)


def rows_of(columns: Mapping[str, Sequence], length: int) -> list[tuple]:
    """Return the columns turned into `length` rows of plain values."""
    values = [
        column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values()
    ]
    return list(zip(*values, strict=True)) if values else [()] * length


def named_rows(columns: Mapping[str, Sequence], length: int) -> list[dict]:
    """Return `length` rows as `rows_of` does, their values by name."""
    return [dict(zip(columns, row, strict=True)) for row in rows_of(columns, length)]


def check_times(times, states: int) -> np.ndarray | None:
    """Return the times of so many states; UserError unless each has one, or there are none."""
    if times is None:
        return None
    times = numbers(times, "times")
    if len(times) != states:
        raise UserError(f"times: {len(times)} for {states} states; give each its own")
    return times


def named_columns(rows: Sequence, names: Sequence, where: str) -> tuple:
    """Return the scores and the extras of `rows` as columns, by both their `names`."""
    scores, extras = names
    values = {
        name: numbers([row.scores.get(name, 0.0) for row in rows], f"{where}: scores[{name!r}]")
        for name in scores
    }
    return values, {name: tuple(row.extra.get(name, "") for row in rows) for name in extras}


def picked(values: Sequence, indices: np.ndarray) -> tuple:
    """Return the values at `indices`."""
    return tuple([values[i] for i in indices.tolist()])


def alike(a, b) -> bool:
    """Return whether two fields are equal: arrays with NaN equal to itself, mappings by name."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b, equal_nan=True)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(alike(a[name], b[name]) for name in a)
    return a == b
