"""Systems: which columns of scores each adds to the first pass; all tuned on one reading of the
lists.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lmtools.base.errors import UserError
from lmtools.rescoring.features import DERIVED, Features, ScoreColumns, read_columns, summed
from lmtools.rescoring.tuning import DevSet
from lmtools.rescoring.tuning_options import INTERPOLATION, LINEAR, TuningOptions
from lmtools.rescoring.weights import Weights
from lmtools.types import TOTAL, NBest


@dataclass(frozen=True)
class SystemPlan:
    """Columns of a system, as `read_columns` names them, and its form. Interpolated, `first_pass`
    has the weights whose sum is the first pass's score; empty: `find_total`.
    """

    columns: tuple[str, ...]
    form: str = LINEAR
    first_pass: Mapping[str, float] = field(default_factory=dict)


def find_total(names: Sequence[str], path) -> dict[str, float]:
    """Find the first pass's score: `total`, `score`, or the only one; else UserError."""
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
    """Read score files of the lists from `source`, and each system's plan (None: the one)."""
    if systems is not None:
        path = " ".join(specs) or "--scores"
        names = (name for plan in systems.values() for name in plan.columns)
        files = [f"{n}={fill_path(path, 'column', summed(n))}" for n in dict.fromkeys(names)]
        return read_columns(files, nbests, source), systems
    columns = read_columns(specs, nbests, source)
    return columns, {None: SystemPlan(tuple(columns.values))}


def fill_path(path: str, kind: str, name: str) -> str:
    """Put a column's or system's name in place of {KIND}; UserError where all are the same."""
    mark = f"{{{kind}}}"
    if mark not in path:
        raise UserError(
            f"{path}: each {kind} needs a path of its own; write {mark} in place of its name"
        )
    return path.replace(mark, name)


def of_system(path: str, system: str | None) -> str:
    return path if system is None else fill_path(path, "system", system)


def list_lengths(systems: Mapping[str | None, SystemPlan]) -> list[str]:
    """List the features of the text that interpolated systems have in their first pass's score."""
    names = dict.fromkeys(name for plan in systems.values() for name in plan.first_pass)
    return [name for name in names if name in DERIVED]


def tune_plan(
    plan: SystemPlan,
    features: Features,
    columns: Collection[str],
    options: TuningOptions,
    dev_set: DevSet,
    *,
    extra: Collection[str],
    tune: Callable[[Features, DevSet, TuningOptions], Weights],
) -> Weights:
    """Return the weights of a system by `tune`, of its own ones of all `columns`, with the features
    of texts that a linear system has; `extra` are those of interpolated systems.
    """
    scores = features.names[: first_column(features, columns)]
    taken = select_columns(features, columns, plan.columns)
    if plan.form == INTERPOLATION:
        total = plan.first_pass or find_total(scores, dev_set.path)
        for name in total:
            if name not in taken.names:
                raise UserError(
                    f"{dev_set.path}: first_pass: no score {name!r}; it has {', '.join(scores)}"
                )
        fix = dict.fromkeys(scores, 0.0) | total
        reference = next((name for name, weight in total.items() if weight), None)
        options = replace(options, form=INTERPOLATION, fix=fix, reference=reference)
        wanted = {*scores, *plan.columns, *total}
    else:
        wanted = {*taken.names} - ({*extra} - {*scores, *options.features})
        others = {*features.names} - wanted  # which other systems have
        fix = {n: w for n, w in (options.fix or {}).items() if n not in others}
        options = replace(options, fix=fix)
    taken = taken.select([name for name in taken.names if name in wanted])
    lms = (*plan.columns, *(("lm",) if "lm" in taken.names else ()))
    return tune(taken, dev_set, replace(options, lms=lms))


def first_column(features: Features, columns: Collection[str]) -> int:
    return next((i for i, name in enumerate(features.names) if name in columns), 0)


def select_columns(features: Features, columns: Collection[str], wanted: Sequence[str]) -> Features:
    """Select the features, of the `columns` those alone that are `wanted`."""
    first = first_column(features, columns)
    return features.select(
        [*features.names[:first], *wanted, *features.names[first + len(columns) :]]
    )
