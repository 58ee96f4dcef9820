"""Weights tuned on a development set, and lists in their order."""

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from lmtools.errors import UserError
from lmtools.evaluate import METRICS
from lmtools.formats import scores
from lmtools.formats.columns import read_column_file
from lmtools.rescoring import (
    FORMS,
    LENGTHS,
    OBJECTIVES,
    Crossing,
    ScoreColumns,
    SystemPlan,
    TuningOptions,
    Weights,
    load_weights,
    make_columns,
    parse_folds,
    rescore_lists,
    tune_lists,
)
from lmtools.rescoring.weights import refuse_other
from lmtools.types import NBest, ScoreTable

Column: TypeAlias = ScoreTable | str | os.PathLike | Sequence[Sequence[float]]
Columns: TypeAlias = Mapping[str, Column]


def tune(
    lists: Sequence[NBest],
    columns: Columns | None = None,
    metric: str = "wer",
    *,
    lengths: Sequence[str] | None = None,
    loop: bool = False,
    fix: Mapping[str, float] | None = None,
    reference: str | None = None,
    objective: str = TuningOptions.objective,
    form: str = TuningOptions.form,
    allow_negative: bool = False,
    negative: Sequence[str] = (),
    folds: int | str | None = None,
    speakers: Mapping[str, str] | None = None,
    seed: int = 0,
    source: str = "lists",
) -> Weights:
    """The weights of the lists' own scores and of `columns` that are best for `metric` (wer, cer,
    bleu, chrf, ter) on lists with references: what `lmtools tune` finds with options of these
    names.

    A column is what `LM.score_lists` gave, the path of a score file or of plain numbers, or
    numbers, one sequence a list; NAME/token and NAME/word are means of the first two. The weights
    of columns are at least 0, unless they are `negative` or `allow_negative` says it of all.
    `source` is what messages and the weights call the lists. UserError for what does not fit
    together; lesser doubts are warnings.
    """
    for name, value, known in (
        ("metric", metric, METRICS),
        ("objective", objective, OBJECTIVES),
        ("form", form, FORMS),
        *(("lengths", length, LENGTHS) for length in lengths or ()),
    ):
        refuse_other(name, value, known)
    table = build_columns(columns, lists, source)
    options = TuningOptions(
        metric, seed, dict(fix or {}), (), form, allow_negative, reference, objective, negative
    )
    crossing = None
    if folds is not None:
        crossing = Crossing(lists, parse_plan(folds), seed, speakers, source)
    told, tuned = tune_lists(lists, table, plan_of(table), source, options, lengths, loop, crossing)
    warn(told)
    return next(tuned)[1]


def rescore(
    lists: Sequence[NBest],
    weights: Weights | str,
    columns: Columns | None = None,
    *,
    source: str = "lists",
) -> list[NBest]:
    """The lists with the best hypothesis first, each hypothesis with all features and `total` as
    its scores: what `lmtools rescore` chooses.

    `columns` are those that the weights were tuned with, of these lists. `weights` may be
    "default:whisper" for lists of Whisper and one column. UserError unless they fit, and where
    scores are surely of another model.
    """
    table = build_columns(columns, lists, source)
    if isinstance(weights, str):
        weights = load_weights(weights, lists, table)
    told, chosen = rescore_lists(
        lists, table, plan_of(table), {None: weights}, source, lambda _: weights.dev.path
    )
    _, best, about = next(chosen)
    warn([*told, *about])
    return best


def build_columns(columns: Columns | None, lists: Sequence[NBest], source: str) -> ScoreColumns:
    """The columns as the verbs have them."""
    if isinstance(lists, NBest):
        raise UserError(f"{source}: one list alone; write [nbest]")
    columns = columns or {}
    tables = {name: read_column(name, column, lists, source) for name, column in columns.items()}
    paths = {
        name: str(column) if isinstance(column, str | os.PathLike) else f"column {name!r}"
        for name, column in columns.items()
    }
    return make_columns(tables, paths, lists, source)


def read_column(name: str, column: Column, lists: Sequence[NBest], source: str) -> ScoreTable:
    """The scores of a column; UserError for numbers that are not one a hypothesis."""
    if isinstance(column, ScoreTable):
        return column
    if isinstance(column, str | os.PathLike):
        return read_column_file(column, lists, source)
    values = [np.asarray(row, dtype=np.float64) for row in column]
    if [len(row) for row in values] != [len(nbest.hyps) for nbest in lists]:
        raise UserError(f"column {name!r}: not one number for each hypothesis of each list")
    counts = [np.ones(len(row), dtype=np.int64) for row in values]
    return scores.make_table(lists, values, counts, {})


def plan_of(columns: ScoreColumns) -> dict[str | None, SystemPlan]:
    """The one system that takes all columns."""
    return {None: SystemPlan(tuple(columns.values))}


def parse_plan(folds: int | str):
    """The folds; UserError for what --folds does not take either."""
    try:
        return parse_folds(str(folds))
    except ValueError as error:
        raise UserError(f"folds: {error}") from None


def warn(lines: Sequence[str]) -> None:
    """Say what the verbs print as warnings, where the caller's caller stands."""
    for line in lines:
        warnings.warn(line.removeprefix("warning: "), stacklevel=3)
