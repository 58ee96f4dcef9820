"""Weights tuned on a development set, and lists in their order."""

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from lmtools.api.checks import (
    list_names,
    list_nbests,
    map_numbers,
    map_texts,
    name_metric,
    read_column,
)
from lmtools.arguments import check_among, check_kind, check_mapping, check_text, check_whole
from lmtools.errors import UserError
from lmtools.rescoring import (
    FORMS,
    LENGTHS,
    OBJECTIVES,
    Crossing,
    ScoreColumns,
    SystemPlan,
    TuningOptions,
    Weights,
    is_default,
    load_weights,
    make_columns,
    parse_folds,
    rescore_lists,
    tune_lists,
)
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
    bleu, chrf, ter, or one with options, as `bleu:tokenize=zh`) on lists with references: what
    `lmtools tune` finds with options of these names.

    A column is what `LM.score_lists` gave, the path of a score file or of plain numbers, or
    numbers, one sequence a list; NAME/token and NAME/word are means of the first two. The weights
    of columns are at least 0, unless they are `negative` or `allow_negative` says it of all.
    `source` is what messages and the weights call the lists. UserError for what does not fit
    together; lesser doubts are warnings.
    """
    lists, metric = list_nbests(lists, source), name_metric(metric)
    lengths, negative = list_names(lengths, "lengths"), list_names(negative, "negative") or []
    for name, value, known in (
        ("objective", objective, OBJECTIVES),
        ("form", form, FORMS),
        *(("lengths", length, LENGTHS) for length in lengths or ()),
    ):
        check_among(value, name, known)
    check_whole(seed, "seed", 0)
    if reference is not None:
        check_text(reference, "reference")
    table, fixed = build_columns(columns, lists, source), map_numbers(fix, "fix")
    options = TuningOptions(
        metric, seed, fixed, (), form, allow_negative, reference, objective, negative
    )
    crossing = None
    if folds is not None:
        if speakers is not None:
            speakers = map_texts(speakers, "speakers")
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
    lists = list_nbests(lists, source)
    table = build_columns(columns, lists, source)
    if is_default(weights):
        weights = load_weights(weights, lists, table)
    remedy = "read a file with lmtools.Weights.load(path)"
    check_kind(weights, Weights, "weights", "Weights", remedy)
    told, chosen = rescore_lists(
        lists, table, plan_of(table), {None: weights}, source, lambda _: weights.dev.path
    )
    _, best, about = next(chosen)
    warn([*told, *about])
    return best


def build_columns(columns: Columns | None, lists: Sequence[NBest], source: str) -> ScoreColumns:
    """The columns as the verbs have them."""
    columns = {} if columns is None else columns
    check_mapping(columns, "columns", "a mapping of names to columns")
    tables = {name: read_column(name, column, lists, source) for name, column in columns.items()}
    paths = {
        name: str(column) if isinstance(column, str | os.PathLike) else f"column {name!r}"
        for name, column in columns.items()
    }
    return make_columns(tables, paths, lists, source)


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
