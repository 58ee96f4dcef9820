"""Systems: which columns of scores each adds to the first pass, from a YAML file; all tuned on one
reading of the lists.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from lmtools.assignments import parse_pair, parse_pairs
from lmtools.config import build, load_yaml
from lmtools.errors import UserError
from lmtools.formats import checks
from lmtools.rescoring.crossing import Crossing
from lmtools.rescoring.features import DERIVED, Features, ScoreColumns, read_columns, summed
from lmtools.rescoring.lazy import LAZY, learn_bounds
from lmtools.rescoring.tuning import (
    FORMS,
    INTERPOLATION,
    LINEAR,
    DevSet,
    TuningOptions,
    measure_lists,
    tune_features,
)
from lmtools.rescoring.weights import Weights, describe_system
from lmtools.types import TOTAL, NBest
from lmtools.workers import map_ordered

FIRST_PASS, ALL, NGRAM = "first-pass", "all", "ngram"
AVERAGES = {"sum": "", "mean": "-mean"}  # ends of the names of systems
UNNORMALISED = "-unnormalised"
INTERPOLATED = "-interpolated"
LM, COLUMN, SYSTEM = "{lm}", "{column}", "{system}"  # what stands in paths for a name


@dataclass(frozen=True)
class SystemPlan:
    """What a system takes: columns of scores, as `read_columns` names them, and the form.

    In the interpolated form `first_pass` has the weights of the lists' own scores and lengths whose
    sum is the first pass's score; empty: `find_total`.
    """

    columns: tuple[str, ...]
    form: str = LINEAR
    first_pass: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class SystemsFile:
    """What a YAML file says; each value is a list, or words with spaces between them.

    `lms` have scores, and `others`, which are no LMs; each is a system alone: an LM by its sum
    (system NAME), its mean over tokens (NAME-mean) or both, as `averages` says. LMs of
    `unnormalised` have scores NAME-unnormalised too, systems alone and where NAME+ngram is a
    combination. A combination is NAME+NAME or {SYSTEM: [NAME, ...]}, with `all` for every LM's sum;
    it is left out where scores that it names are not there.

    `forms` are those of an LM alone: linear (NAME), interpolation, (1 - lambda) first pass + lambda
    LM (NAME-interpolated), or both. The first pass's score is then the sum of NAME=W, weight times
    score or length of the list (NAME: weight 1), in `first_pass` with an LM's sum, in
    `first_pass_mean` (default: the same) with its mean.
    """

    lms: list[str] | str | None = None
    others: list[str] | str | None = None
    averages: list[str] | str = "sum"
    combinations: list | str | None = None
    unnormalised: list[str] | str | None = None
    forms: list[str] | str = LINEAR
    first_pass: list[str] | str | None = None
    first_pass_mean: list[str] | str | None = None

    def __post_init__(self):
        for name in self.__dataclass_fields__:
            value = getattr(self, name) or []
            object.__setattr__(self, name, value.split() if isinstance(value, str) else value)
        for key, known in (("averages", AVERAGES), ("forms", FORMS)):
            for name in getattr(self, key):
                if name not in known:
                    raise UserError(f"{key}: {name!r} is unknown; known: {', '.join(known)}")
        for item in self.combinations:
            shape = item if isinstance(item, dict) else {str(item): [item]}
            for parts in shape.values():
                if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
                    raise UserError(
                        f"combinations: {item!r:.60} is neither NAME+NAME nor"
                        " {SYSTEM: [NAME, NAME]}; mend it"
                    )

    def columns(self) -> dict[str, str]:
        """Each name that a system may have among its parts, and its column of scores.

        An LM that is called as the mean of another would be is that LM.
        """
        means = {name + AVERAGES["mean"]: f"{name}/token" for name in self.lms}
        own = (name + UNNORMALISED for name in self.unnormalised)
        return means | {name: name for name in (*own, *self.others, *self.lms)}

    def plans(self) -> Iterator[tuple[str, SystemPlan]]:
        """Each system; those that lack scores are left out."""
        columns = self.columns()
        every = {} if ALL in columns or not self.lms else {ALL: self.lms}
        for name, parts in self.linear():
            parts = dict.fromkeys(one for part in parts for one in every.get(part, [part]))
            if name == FIRST_PASS or (parts and all(part in columns for part in parts)):
                yield name, SystemPlan(tuple(columns[part] for part in parts))
        if INTERPOLATION in self.forms:
            first = parse_total(self.first_pass)
            totals = {"sum": first, "mean": parse_total(self.first_pass_mean) or first}
            for lm in self.lms:
                for kind in self.averages:
                    part = lm + AVERAGES[kind]
                    plan = SystemPlan((columns[part],), INTERPOLATION, totals[kind])
                    yield part + INTERPOLATED, plan

    def linear(self) -> Iterator[tuple[str, list[str]]]:
        """Each system of the linear form, with its parts, before any is left out."""
        yield FIRST_PASS, []
        yield from ((name, [name]) for name in self.others)
        for lm in self.lms if LINEAR in self.forms else ():
            yield from ((lm + AVERAGES[kind], [lm + AVERAGES[kind]]) for kind in self.averages)
        combinations: dict[str, list[str]] = {}
        for item in self.combinations:
            combinations |= item if isinstance(item, dict) else {item: item.split("+")}
        yield from combinations.items()
        for name in self.unnormalised:
            yield name + UNNORMALISED, [name + UNNORMALISED]
            if f"{name}+{NGRAM}" in combinations:
                yield f"{name}{UNNORMALISED}+{NGRAM}", [name + UNNORMALISED, NGRAM]


def parse_total(words: Sequence[str]) -> dict[str, float]:
    """The weights that NAME=W and NAME spell."""
    pairs = [word if "=" in word else f"{word}=1" for word in words]
    example = "write for instance am=0.1 lm=1"
    return {
        name: checks.number(value, "first_pass", f"the weight of {name!r}")
        for name, value in parse_pairs(pairs, "first_pass", "NAME=W", example).items()
    }


def find_total(names: Sequence[str], path) -> dict[str, float]:
    """Which of the lists' own scores `names` is the first pass's: `total`, `score`, or the only
    one. UserError about `path` where none can be told.
    """
    for name in (TOTAL, "score", *(names if len(names) == 1 else ())):
        if name in names:
            return {name: 1.0}
    raise UserError(
        f"{path}: which of {', '.join(names)} is the first pass's score, for (1 - lambda) first"
        " pass + lambda LM? say it, as in first_pass='am=0.1 lm=1'"
    )


def read_systems(path, settings: Sequence[str] = ()) -> dict[str, SystemPlan]:
    """What each system takes, from the YAML file `path` under `settings`, KEY=WORDS each.

    UserError for what does not fit, and for a name that cannot be a directory's.
    """
    tree = load_yaml(path)
    for setting in settings:
        example = "write for instance lms=ngram"
        key, words = parse_pair(setting, "--systems", "KEY=WORDS", example, empty=True)
        tree[key] = words
    found = dict(build(SystemsFile, tree, path).plans())
    for name in found:
        if "/" in name or name in ("", ".", ".."):
            raise UserError(f"{path}: a system called {name!r} has no directory; rename it")
    return found


def score_files(
    systems: Mapping[str, SystemPlan], path: str | None, mark: str = LM, option: str = "--systems"
) -> list[str]:
    """NAME=FILE of every column of the systems, each once; `path` has `mark` for what it is of."""
    names = dict.fromkeys(name for plan in systems.values() for name in plan.columns)
    if names and mark not in (path or ""):
        raise UserError(
            f"--scores {path or '(none)'}: with {option} one path with {mark} for the name, as in"
            f" exp/score/{mark}/dev.scores"
        )
    return [f"{name}={path.replace(mark, summed(name))}" for name in names]


def read_scores(
    specs: Sequence[str],
    systems: Sequence[str] | None,
    nbests: Sequence[NBest],
    source,
    plans: Mapping[str, SystemPlan] | None = None,
) -> tuple[ScoreColumns, Mapping[str | None, SystemPlan]]:
    """The columns of score files of the lists read from `source`, and what each system takes;
    `specs` and `systems` as after --scores and --systems, `plans` as of an experiment's file in
    place of `systems`. One system without both, called None.
    """
    if plans is not None:
        files = score_files(plans, " ".join(specs), COLUMN, "--experiment")
        return read_columns(files, nbests, source), plans
    if not systems:
        columns = read_columns(specs, nbests, source)
        return columns, {None: SystemPlan(tuple(columns.values))}
    found = read_systems(systems[0], systems[1:])
    return read_columns(score_files(found, " ".join(specs)), nbests, source), found


def of_system(path: str, system: str | None) -> str:
    """The path of a system's file, as it is for the only one; UserError where all systems would
    have the same.
    """
    if system is None:
        return path
    if SYSTEM not in path:
        raise UserError(
            f"{path}: each system needs a path of its own; write {SYSTEM} in place of its name"
        )
    return path.replace(SYSTEM, system)


def list_lengths(systems: Mapping[str | None, SystemPlan]) -> list[str]:
    """The features of the text that interpolated systems have in their first pass's score."""
    names = dict.fromkeys(name for plan in systems.values() for name in plan.first_pass)
    return [name for name in names if name in DERIVED]


def tune_systems(
    systems: Mapping[str, SystemPlan],
    nbests: Sequence[NBest],
    columns: ScoreColumns,
    features: Features,
    path,
    options: TuningOptions,
    lengths: Collection[str],
    nj: int = 1,
    crossing: Crossing | None = None,
    tolerance: float = 0.0,
) -> Iterator[tuple[str, Weights]]:
    """The weights of each system, by name, with its facts: `features` are those of the lists read
    from `path` with all `columns`, of which a system takes its own, and with `lengths`, which a
    linear system has, and `list_lengths`.

    `nj` processes tune. With a `crossing` there are the weights of each fold too. The notes have
    the bounds of lazy rescoring, of this `tolerance`. UserError as `tune`.
    """
    dev_set = measure_lists(nbests, options.metric, path)
    own = features.names[: first_column(features, columns.values)]
    extra = {*list_lengths(systems)} - {*own, *lengths}
    tune = crossing.tune if crossing else tune_features
    work = partial(tune_system, features, tuple(columns.values), own, extra, dev_set, options, tune)
    for (system, plan), weights in zip(
        systems.items(), map_ordered(work, systems.values(), nj), strict=True
    ):
        taken = columns.select(plan.columns)
        facts = describe_system(nbests, taken, path)
        bounds = learn_bounds(nbests, features, taken, weights, tolerance)
        notes = {**weights.search, LAZY: bounds} if bounds else weights.search
        yield system, replace(weights, signatures=taken.signatures, system=facts, search=notes)


def tune_system(
    features: Features,
    columns: Collection[str],
    own: Sequence[str],
    extra: Collection[str],
    dev_set: DevSet,
    options: TuningOptions,
    tune: Callable[[Features, DevSet, TuningOptions], Weights],
    plan: SystemPlan,
) -> Weights:
    """The weights of the system that takes the columns of `plan`, by `tune`; `own` are the lists'
    scores, `extra` features are those of interpolated systems.
    """
    some = select_columns(features, columns, plan.columns)
    if plan.form == INTERPOLATION:
        total = plan.first_pass or find_total(own, dev_set.path)
        for name in total:
            if name not in some.names:
                raise UserError(
                    f"{dev_set.path}: first_pass: no score {name!r}; it has {', '.join(own)}"
                )
        fixed = dict.fromkeys(own, 0.0) | total
        reference = next((name for name, weight in total.items() if weight), None)
        options = replace(options, form=INTERPOLATION, fixed=fixed, reference=reference)
        wanted = {*own, *plan.columns, *total}
    else:
        wanted = {*some.names}.difference(extra)
        others = {*features.names} - wanted  # which other systems have
        fixed = {n: weight for n, weight in (options.fixed or {}).items() if n not in others}
        options = replace(options, fixed=fixed)
    some = some.select([name for name in some.names if name in wanted])
    lms = (*plan.columns, *(("lm",) if "lm" in some.names else ()))
    return tune(some, dev_set, replace(options, lms=lms))


def first_column(features: Features, columns: Collection[str]) -> int:
    """The place of the first column among the features; 0 where there is none."""
    return next((i for i, name in enumerate(features.names) if name in columns), 0)


def select_columns(features: Features, columns: Collection[str], wanted: Sequence[str]) -> Features:
    """The features with those `columns` alone that are `wanted`, in that order, where columns
    stand.
    """
    first = first_column(features, columns)
    return features.select(
        [*features.names[:first], *wanted, *features.names[first + len(columns) :]]
    )
