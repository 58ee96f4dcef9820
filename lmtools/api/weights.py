"""Weights tuned on a development set, and lists in their order."""

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from lmtools.api.files import list_nbests, map_texts, read_column
from lmtools.base.doors import open_door
from lmtools.base.errors import in_keywords, speak_python
from lmtools.base.grammar import check_kind, check_mapping
from lmtools.base.options import build_keywords, describe_keywords
from lmtools.rescoring.defaults import is_default, load_weights
from lmtools.rescoring.experiment import SystemPlan
from lmtools.rescoring.features import ScoreColumns, make_columns
from lmtools.rescoring.lists import rescore_lists, tune_lists
from lmtools.rescoring.tuning import Crossing
from lmtools.rescoring.tuning_options import TuningOptions
from lmtools.rescoring.weights import Weights
from lmtools.types import NBest, ScoreTable

Column: TypeAlias = ScoreTable | str | os.PathLike | Sequence[Sequence[float]]
Columns: TypeAlias = Mapping[str, Column]
Phrases: TypeAlias = str | os.PathLike | Sequence[str] | Mapping[str, Sequence[str]]


@in_keywords()
def tune(
    lists: Sequence[NBest],
    columns: Columns | None = None,
    metric: str = "wer",
    *,
    phrases: Phrases | None = None,
    speakers: Mapping[str, str] | None = None,
    source: str = "lists",
    **options: Any,
) -> Weights:
    """Tune the weights of the lists' own scores and of `columns` that are best for `metric` (wer,
    cer, bleu, chrf, ter, or one with options, as `bleu:tokenize=zh`) on lists with references, as
    `lmtools tune` does.

    A column is what `LM.score_lists` gave, the path of a score file or of plain numbers, or
    numbers, one sequence a list; NAME/token and NAME/word are means of the first two. `phrases` are
    the column `phrases`: of a glossary's file (`F,option=value,..`), of phrases for all, or of
    phrases by id of utterances, speakers or sessions. `options` are those of TuningOptions:
    `objective`, `form`, `lengths`, `fix`, `reference`, `negative`, `folds`,
    `seed`. `speakers` are of folds by speaker, by utterance; `source` is what messages and the
    weights call the lists. UserError for what does not fit together; lesser doubts are warnings.
    """
    lists = list_nbests(lists, source)
    given = build_keywords(TuningOptions, options, "tune")
    chosen = TuningOptions(metric, **given)
    table, plan, doubts = add_glossary(
        build_columns(columns, lists, source), lists, phrases, source
    )
    crossing = None
    if chosen.folds is not None:
        if speakers is not None:
            speakers = map_texts(speakers, "speakers")
        crossing = Crossing(lists, chosen, speakers, source)
    messages, tuned = tune_lists(lists, table, plan, source, options=chosen, crossing=crossing)
    warn([*doubts, *messages])
    return next(tuned)[1]


describe_keywords(tune, TuningOptions)


@in_keywords()
def rescore(
    lists: Sequence[NBest],
    weights: Weights | str,
    columns: Columns | None = None,
    *,
    phrases: Phrases | None = None,
    source: str = "lists",
) -> list[NBest]:
    """Return the lists with the best hypothesis first, each hypothesis with all features and
    `total` as its scores: what `lmtools rescore` chooses.

    `columns` are those that the weights were tuned with, of these lists, and `phrases` as of `tune`
    may be others. `weights` may be "default:whisper" for lists of Whisper and one column, or
    "default:phrases" for any lists and `phrases` alone. UserError unless they fit, and where scores
    are surely of another model.
    """
    lists = list_nbests(lists, source)
    table, plan, warnings = add_glossary(
        build_columns(columns, lists, source), lists, phrases, source
    )
    if is_default(weights):
        weights = load_weights(weights, lists, table)
    remedy = "read a file with lmtools.Weights.load(path)"
    check_kind(weights, Weights, "weights", "Weights", remedy=remedy)
    messages, chosen = rescore_lists(
        lists, table, plan, {None: weights}, source=source, place=lambda _: weights.dev.path
    )
    _, best, doubts = next(chosen)
    warn([*warnings, *messages, *doubts])
    if table.glossary and table.glossary.spec.spelling:
        return table.glossary.spell_lists(best)
    return best


def add_glossary(
    table: ScoreColumns, lists: Sequence[NBest], phrases: Phrases | None, source: str
) -> tuple[ScoreColumns, dict[str | None, SystemPlan], list[str]]:
    """Return the columns with that of `phrases`, the one system that takes all, and warnings."""
    if phrases is None:
        return table, plan_of(table), []
    door = open_door("phrases", "column", "phrases")
    glossary = door.find_glossary(phrases)
    table, plan = door.add_phrases((table, plan_of(table)), lists, glossary, source)
    return table, plan, [*door.warn_ordinary(lists, glossary)]


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


def warn(lines: Iterable[str]) -> None:
    """Say what the verbs print as warnings, where the caller's caller stands."""
    for line in lines:
        said = speak_python(line.removeprefix("warning: "))
        warnings.warn(said, stacklevel=4)  # above in_keywords
