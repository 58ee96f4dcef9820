"""Lists and lattices of every format, read and written as values; checks of what programs give in
their place.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np

from lmtools.base.errors import UserError, in_keywords
from lmtools.base.grammar import (
    check_kind,
    check_mapping,
    check_number,
    check_numbers,
    check_path,
    check_text,
    list_items,
    mismatch,
)
from lmtools.evaluate.metrics import find_metric
from lmtools.formats import FORMATS, scores
from lmtools.formats.checks import first_time
from lmtools.formats.lattices import LATTICES
from lmtools.formats.registry import Formats, find_format
from lmtools.formats.scores import read_column_file
from lmtools.lattice.weights import check_lattice
from lmtools.types import Lattice, NBest, ScoreTable


def list_nbests(lists: Iterable[NBest], name: str) -> list[NBest]:
    """N-best lists; UserError for what `check_nbest` refuses, and an utterance that comes twice."""
    if isinstance(lists, NBest):
        raise UserError(f"{name}: one list alone; write [nbest]")
    lists, seen = list_items(lists, name, "N-best lists"), set()
    for place, nbest in enumerate(lists):
        where = f"{name}[{place}]"
        check_nbest(nbest, where)
        first_time(nbest.utt, seen, where)
        seen.add(nbest.utt)
    return lists


def check_nbest(nbest: NBest, where: str) -> NBest:
    """Return `nbest`; UserError for what is none, and for scores or extras of other types."""
    check_kind(nbest, NBest, where, "an N-best list", remedy="make it with lmtools.NBest.of")
    for rank, hyp in enumerate(nbest.hyps, 1):
        for key, value in hyp.scores.items():
            if type(key) is not str or type(value) is not float:
                which = f"{where}: hypothesis {rank} of utterance {nbest.utt!r}: scores"
                check_text(key, f"{which}: key {key!r:.40}")
                check_number(value, f"{which}[{key!r}]", finite=False)
        if hyp.extra:
            map_texts(hyp.extra, f"{where}: hypothesis {rank} of utterance {nbest.utt!r}: extra")
    map_texts(nbest.extra, f"{where}: utterance {nbest.utt!r}: extra")
    return nbest


def map_texts(values: Mapping[str, str], name: str) -> dict[str, str]:
    """Texts by name."""
    check_mapping(values, name, "a mapping of names to texts")
    return {key: check_text(text, f"{name}[{key!r}]") for key, text in values.items()}


def name_metric(metric: str) -> str:
    """Return the one name of a metric, NAME or NAME:option=value,...; UserError where there is
    none.
    """
    return find_metric(check_text(metric, "metric"))[0]


def read_column(name: str, column, lists: Sequence[NBest], source: str) -> ScoreTable:
    """Return the scores of a column; UserError for numbers that are not one a hypothesis."""
    where = f"column {name!r}"
    if isinstance(column, ScoreTable):
        return check_table(column, where)
    if isinstance(column, str | os.PathLike):
        return read_column_file(column, lists, source)
    if column is None or isinstance(column, bytes):
        raise mismatch(column, where, "scores", "give what LM.score_lists gave, a path, or numbers")
    rows = list(column) if getattr(column, "ndim", 1) == 2 else list_items(column, where, "rows")
    values = [
        np.array(check_numbers(row, f"{where}[{place}]"), dtype=np.float64)
        for place, row in enumerate(rows)
    ]
    wrong = f"{where}: not one number for each hypothesis of each list"
    if len(values) != len(lists):
        raise UserError(f"{wrong}: {len(values)} rows for {len(lists)} lists")
    for row, nbest in zip(values, lists, strict=True):
        if len(row) != len(nbest.hyps):
            raise UserError(
                f"{wrong}: {len(row)} for the {len(nbest.hyps)} hypotheses of {nbest.utt!r}"
            )
    counts = [np.ones(len(row), dtype=np.int64) for row in values]
    return scores.make_table(lists, values, counts, {})


def check_table(table: ScoreTable, where: str) -> ScoreTable:
    """Return `table` if its fields are what they should be; UserError otherwise."""
    for field in ("log_prob", "tokens"):
        rows = getattr(table, field)
        check_mapping(rows, f"{where}: {field}", "a mapping of utterances to numbers")
        for utt, row in rows.items():
            if getattr(getattr(row, "dtype", None), "kind", "O") not in "fiu":
                check_numbers(row, f"{where}: {field}[{utt!r}]")
    check_mapping(table.signature, f"{where}: signature", "a mapping of names to texts")
    if table.lists is not None:
        check_text(table.lists, f"{where}: lists")
    for utt, row in table.tokens.items():
        items, count = list_items(row, f"{where}: tokens[{utt!r}]", "them"), 0
        if utt in table.log_prob and len(items) != (count := len(table.log_prob[utt])):
            raise UserError(f"{where}: tokens of {utt!r}: {len(items)} for {count} scores")
    return table


Item = TypeVar("Item", NBest, Lattice)
File: TypeAlias = "str | PathLike[str]"
KINDS = {NBest: FORMATS, Lattice: LATTICES}


@overload
def read(path: File, *, form: str | None = None) -> list[NBest]: ...


@overload
def read(path: File, kind: type[Item], *, form: str | None = None) -> list[Item]: ...


@in_keywords()
def read(path: File, kind: type = NBest, *, form: str | None = None) -> list[Any]:
    """Return the N-best lists in `path`, or its lattices if `kind` is Lattice.

    `form` is NAME or NAME:option=value,... of docs/formats.md; None: recognised. UserError for what
    is of no such format or damaged. A str that is one of Kaldi's rspecifiers (`ark:...`) is read as
    one, a Path never is.
    """
    return formats_of(kind, path, form).read(path, form)


@overload
def stream(path: File, *, form: str | None = None) -> Iterator[NBest]: ...


@overload
def stream(path: File, kind: type[Item], *, form: str | None = None) -> Iterator[Item]: ...


def stream(path: File, kind: type = NBest, *, form: str | None = None) -> Iterator[Any]:
    """Return the same one by one, each as soon as the format permits it."""
    return formats_of(kind, path, form).stream(path, form)


@in_keywords()
def write(items: Iterable[NBest] | Iterable[Lattice], path: File, form: str = "jsonl") -> None:
    """Write lists or lattices to `path` in the format `form`, whole or not at all; UserError for
    what it cannot hold.
    """
    check_path(path, "path")
    writer = find_format(check_text(form, "form"), FORMATS | LATTICES)
    name = form.partition(":")[0]
    what = "N-best lists" if name in FORMATS else "lattices"
    if isinstance(items, NBest | Lattice):
        raise UserError("items: one alone; write [it]")
    if isinstance(items, str | bytes | Mapping) or getattr(items, "ndim", 1) != 1:
        raise mismatch(items, "items", what)
    if not isinstance(items, Iterable):
        raise mismatch(items, "items", what)
    check = check_nbest if name in FORMATS else check_lattice
    writer.write((check(item, f"items[{place}]") for place, item in enumerate(items)), path)


def formats_of(kind, path, form: str | None) -> Formats:
    """Return the formats of a kind; UserError for arguments that are none."""
    if not isinstance(kind, type) or kind not in KINDS:
        raise mismatch(kind, "kind", "lmtools.NBest or lmtools.Lattice")
    check_path(path, "path")
    if form is not None:
        check_text(form, "form")
    return KINDS[kind]
