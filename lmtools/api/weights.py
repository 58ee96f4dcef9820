"""Weights tuned on a development set, and lists in their order."""

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from lmtools.api.checks import list_nbests, map_texts, read_column
from lmtools.base.arguments import check_kind, check_mapping
from lmtools.base.options import build_keywords, describe_keywords
from lmtools.rescoring import (
    Crossing,
    ScoreColumns,
    SystemPlan,
    TuningOptions,
    Weights,
    is_default,
    load_weights,
    make_columns,
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
    speakers: Mapping[str, str] | None = None,
    source: str = "lists",
    **options: Any,
) -> Weights:
    """Tune the weights of the lists' own scores and of `columns` that are best for `metric` (wer,
    cer, bleu, chrf, ter, or one with options, as `bleu:tokenize=zh`) on lists with references, as
    `lmtools tune` does.

    A column is what `LM.score_lists` gave, the path of a score file or of plain numbers, or
    numbers, one sequence a list; NAME/token and NAME/word are means of the first two. `options` are
    those of lmtools.rescoring.TuningOptions: `objective`, `form`, `lengths`, `loop`, `fix`,
    `reference`, `negative`, `allow_negative`, `folds`, `tolerance`, `seed`. `speakers` are of folds
    by speaker, by utterance; `source` is what messages and the weights call the lists. UserError
    for what does not fit together; lesser doubts are warnings.
    """
    lists = list_nbests(lists, source)
    given = build_keywords(TuningOptions, options, "tune")
    chosen = TuningOptions(metric, **given)
    table = build_columns(columns, lists, source)
    crossing = None
    if chosen.folds is not None:
        if speakers is not None:
            speakers = map_texts(speakers, "speakers")
        crossing = Crossing(lists, chosen, speakers, source)
    messages, tuned = tune_lists(
        lists, table, plan_of(table), source, options=chosen, crossing=crossing
    )
    warn(messages)
    return next(tuned)[1]


describe_keywords(tune, TuningOptions)


def rescore(
    lists: Sequence[NBest],
    weights: Weights | str,
    columns: Columns | None = None,
    *,
    source: str = "lists",
) -> list[NBest]:
    """Return the lists with the best hypothesis first, each hypothesis with all features and
    `total` as its scores: what `lmtools rescore` chooses.

    `columns` are those that the weights were tuned with, of these lists. `weights` may be
    "default:whisper" for lists of Whisper and one column. UserError unless they fit, and where
    scores are surely of another model.
    """
    lists = list_nbests(lists, source)
    table = build_columns(columns, lists, source)
    if is_default(weights):
        weights = load_weights(weights, lists, table)
    remedy = "read a file with lmtools.Weights.load(path)"
    check_kind(weights, Weights, "weights", "Weights", remedy=remedy)
    messages, chosen = rescore_lists(
        lists,
        table,
        plan_of(table),
        {None: weights},
        source=source,
        place=lambda _: weights.dev.path,
    )
    _, best, doubts = next(chosen)
    warn([*messages, *doubts])
    return best


def build_columns(columns: Columns | None, lists: Sequence[NBest], source: str) -> ScoreColumns:
    """Return the columns as the verbs have them."""
    columns = {} if columns is None else columns
    check_mapping(columns, "columns", "a mapping of names to columns")
    tables = {name: read_column(name, column, lists, source) for name, column in columns.items()}
    paths = {
        name: str(column) if isinstance(column, str | os.PathLike) else f"column {name!r}"
        for name, column in columns.items()
    }
    return make_columns(tables, paths, lists, source)


def plan_of(columns: ScoreColumns) -> dict[str | None, SystemPlan]:
    """Return the one system that takes all columns."""
    return {None: SystemPlan(tuple(columns.values))}


def warn(lines: Sequence[str]) -> None:
    """Say what the verbs print as warnings, where the caller's caller stands."""
    for line in lines:
        warnings.warn(line.removeprefix("warning: "), stacklevel=3)
