"""Systems: which columns of scores each adds to the first pass; all tuned on one reading of the
lists.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lmtools.base.doors import open_door
from lmtools.base.errors import UserError
from lmtools.base.workers import map_ordered
from lmtools.rescoring.features import DERIVED, Features, ScoreColumns, read_columns, summed
from lmtools.rescoring.lazy import LAZY, learn_bounds
from lmtools.rescoring.tuning import Crossing, DevSet, measure_lists, tune_features
from lmtools.rescoring.tuning_options import INTERPOLATION, LINEAR, TuningOptions
from lmtools.rescoring.weights import Weights, describe_system
from lmtools.types import PHRASES, TOTAL, NBest


@dataclass(frozen=True)
class SystemPlan:
    """Columns of scores of a system, as `read_columns` names them, and its form.

    In the interpolated form `first_pass` has the weights of the lists' own scores and lengths whose
    sum is the first pass's score; empty: `find_total`.
    """

    columns: tuple[str, ...]
    form: str = LINEAR
    first_pass: Mapping[str, float] = field(default_factory=dict)


def find_total(names: Sequence[str], path) -> dict[str, float]:
    """Find the first pass's score among the lists' own scores `names`: `total`, `score`, or the
    only one. UserError about `path` where there is none.
    """
    for name in (TOTAL, "score", *(names if len(names) == 1 else ())):
        if name in names:
            return {name: 1.0}
    raise UserError(
        f"{path}: which of {', '.join(names)} is the first pass's score, for (1 - lambda) first"
        " pass + lambda LM? say it, as in first_pass: {am: 0.1, lm: 1}"
    )


def read_scores(
    specs: Sequence[str], systems: Mapping[str, SystemPlan] | None, nbests: Sequence[NBest], source
) -> tuple[ScoreColumns, Mapping[str | None, SystemPlan]]:
    """Read the columns of score files of the lists read from `source`, and the plan of each system;
    `specs` as after --scores. One system without `systems`, called None.
    """
    if systems is not None:
        path = " ".join(specs) or "--scores"
        names = (name for plan in systems.values() for name in plan.columns)
        files = [f"{n}={fill_path(path, 'column', summed(n))}" for n in dict.fromkeys(names)]
        return read_columns(files, nbests, source), systems
    columns = read_columns(specs, nbests, source)
    return columns, {None: SystemPlan(tuple(columns.values))}


def fill_path(path: str, kind: str, name: str) -> str:
    """Put the name of a column, system or the like into `path` in place of {KIND}; UserError where
    all would have the same.
    """
    mark = f"{{{kind}}}"
    if mark not in path:
        raise UserError(
            f"{path}: each {kind} needs a path of its own; write {mark} in place of its name"
        )
    return path.replace(mark, name)


def of_system(path: str, system: str | None) -> str:
    """Return the path of a system's file, as it is for the only one."""
    return path if system is None else fill_path(path, "system", system)


def list_lengths(systems: Mapping[str | None, SystemPlan]) -> list[str]:
    """List the features of the text that interpolated systems have in their first pass's score."""
    names = dict.fromkeys(name for plan in systems.values() for name in plan.first_pass)
    return [name for name in names if name in DERIVED]


@dataclass(frozen=True)
class TuningSet:
    """Lists read from `source`, and their features with the `columns` of all systems."""

    nbests: Sequence[NBest]
    columns: ScoreColumns
    features: Features
    source: object


def tune_systems(
    systems: Mapping[str, SystemPlan],
    tuning_set: TuningSet,
    options: TuningOptions,
    crossing: Crossing | None = None,
    nj: int = 1,
) -> Iterator[tuple[str, Weights]]:
    """Tune each system; yield (name, weights with the system's facts). Of the features a system
    takes its own columns, with the features of texts that a linear system has, and `list_lengths`.

    `nj` processes tune. With a `crossing` there are the weights of each fold too. The notes have
    the bounds of lazy rescoring. UserError as `tune`.
    """
    nbests, columns, features = tuning_set.nbests, tuning_set.columns, tuning_set.features
    scores = features.names[: first_column(features, columns.values)]
    dev_set = measure_lists(nbests, options.metric, tuning_set.source)
    if columns.glossary:
        measure_harm = open_door("phrases", "harm:measure_harm", PHRASES)
        harm = measure_harm(nbests, columns.values[PHRASES], columns.glossary)
        dev_set = replace(dev_set, harm=harm)
    tuner = SystemTuner(
        features=features,
        columns=tuple(columns.values),
        scores=scores,
        extra={*list_lengths(systems)} - {*scores, *options.features},
        dev_set=dev_set,
        options=options,
        tune=crossing.tune if crossing else tune_features,
    )
    work = map_ordered(tuner.tune_plan, systems.values(), nj)
    for (system, plan), weights in zip(systems.items(), work, strict=True):
        taken = columns.select(plan.columns)
        facts = describe_system(nbests, taken, tuning_set.source)
        lms = taken.select([name for name in plan.columns if name != PHRASES])
        bounds = learn_bounds(nbests, features, lms, weights)
        notes = {**weights.search, LAZY: bounds} if bounds else weights.search
        yield system, replace(weights, signatures=taken.signatures, system=facts, search=notes)


@dataclass(frozen=True)
class SystemTuner:
    """Tuning of any system by `tune`, of `features` with the `columns` of all systems; `scores` are
    the lists' own, `extra` features those of interpolated systems.
    """

    features: Features
    columns: tuple[str, ...]
    scores: tuple[str, ...]
    extra: Collection[str]
    dev_set: DevSet
    options: TuningOptions
    tune: Callable[[Features, DevSet, TuningOptions], Weights]

    def tune_plan(self, plan: SystemPlan) -> Weights:
        """Tune the system that takes the columns of `plan`."""
        features = select_columns(self.features, self.columns, plan.columns)
        if plan.form == INTERPOLATION:
            total = plan.first_pass or find_total(self.scores, self.dev_set.path)
            for name in total:
                if name not in features.names:
                    raise UserError(
                        f"{self.dev_set.path}: first_pass: no score {name!r}; it has"
                        f" {', '.join(self.scores)}"
                    )
            fix = dict.fromkeys(self.scores, 0.0) | total
            reference = next((name for name, weight in total.items() if weight), None)
            options = replace(self.options, form=INTERPOLATION, fix=fix, reference=reference)
            wanted = {*self.scores, *plan.columns, *total}
        else:
            wanted = {*features.names}.difference(self.extra)
            others = {*self.features.names} - wanted  # which other systems have
            fix = {n: w for n, w in (self.options.fix or {}).items() if n not in others}
            options = replace(self.options, fix=fix)
        features = features.select([name for name in features.names if name in wanted])
        lms = (*plan.columns, *(("lm",) if "lm" in features.names else ()))
        return self.tune(features, self.dev_set, replace(options, lms=lms))


def first_column(features: Features, columns: Collection[str]) -> int:
    """Return the place of the first column among the features; 0 where there is none."""
    return next((i for i, name in enumerate(features.names) if name in columns), 0)


def select_columns(features: Features, columns: Collection[str], wanted: Sequence[str]) -> Features:
    """Select the features and those `columns` alone that are `wanted`, in that order, where columns
    stand.
    """
    first = first_column(features, columns)
    return features.select(
        [*features.names[:first], *wanted, *features.names[first + len(columns) :]]
    )
