"""Systems: which columns of scores each adds to the first pass, from a YAML file; all tuned on one
reading of the lists.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lmtools.assignments import parse_pair
from lmtools.config import build, load_yaml
from lmtools.errors import UserError
from lmtools.rescore.features import Features, ScoreColumns, read_columns, summed
from lmtools.rescore.tuning import DevSet, TuningOptions, measure_lists, tune_features
from lmtools.rescore.weights import Weights, describe_system
from lmtools.types import NBest
from lmtools.workers import map_ordered

FIRST_PASS, ALL, NGRAM = "first-pass", "all", "ngram"
AVERAGES = {"sum": "", "mean": "-mean"}  # ends of the names of systems
UNNORMALISED = "-unnormalised"
LM, SYSTEM = "{lm}", "{system}"  # what stands in paths for a name


@dataclass(frozen=True)
class SystemsFile:
    """What a YAML file says; each value is a list, or words with spaces between them.

    `lms` have scores, and `others`, which are no LMs; each is a system alone: an LM by its sum
    (system NAME), its mean over tokens (NAME-mean) or both, as `averages` says. LMs of
    `unnormalised` have scores NAME-unnormalised too, systems alone and where NAME+ngram is a
    combination. A combination is NAME+NAME, `all` (every LM's sum) or {SYSTEM: [NAME, ...]}; it is
    left out where scores that it names are not there.
    """

    lms: list[str] | str | None = None
    others: list[str] | str | None = None
    averages: list[str] | str = "sum"
    combinations: list | str | None = None
    unnormalised: list[str] | str | None = None

    def __post_init__(self):
        for name in self.__dataclass_fields__:
            value = getattr(self, name) or []
            object.__setattr__(self, name, value.split() if isinstance(value, str) else value)
        for name in self.averages:
            if name not in AVERAGES:
                raise UserError(f"averages: {name!r} is unknown; known: {', '.join(AVERAGES)}")
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

    def systems(self) -> Iterator[tuple[str, list[str]]]:
        """Each system, with its parts, before any is left out."""
        yield FIRST_PASS, []
        yield from ((name, [name]) for name in self.others)
        for lm in self.lms:
            yield from ((lm + AVERAGES[kind], [lm + AVERAGES[kind]]) for kind in self.averages)
        combinations: dict[str, list[str]] = {}
        for item in self.combinations:
            combinations |= item if isinstance(item, dict) else {item: item.split("+")}
        yield from combinations.items()
        for name in self.unnormalised:
            yield name + UNNORMALISED, [name + UNNORMALISED]
            if f"{name}+{NGRAM}" in combinations:
                yield f"{name}{UNNORMALISED}+{NGRAM}", [name + UNNORMALISED, NGRAM]


def read_systems(path, settings: Sequence[str] = ()) -> dict[str, tuple[str, ...]]:
    """The columns of each system, as `read_columns` names them, from the YAML file `path` under
    `settings`, KEY=WORDS each.

    UserError for what does not fit, and for a name that cannot be a directory's.
    """
    tree = load_yaml(path)
    for setting in settings:
        example = "write for instance lms=ngram"
        key, words = parse_pair(setting, "--systems", "KEY=WORDS", example, empty=True)
        tree[key] = words
    file = build(SystemsFile, tree, path)
    columns, found = file.columns(), {}
    for name, parts in file.systems():
        if "/" in name or name in ("", ".", ".."):
            raise UserError(f"{path}: a system called {name!r} has no directory; rename it")
        parts = file.lms if parts == [ALL] and ALL not in columns else parts
        if name == FIRST_PASS or (parts and all(part in columns for part in parts)):
            found[name] = tuple(columns[part] for part in parts)
    return found


def score_files(systems: Mapping[str, Collection[str]], path: str | None) -> list[str]:
    """NAME=FILE of every column of the systems, each once; `path` has {lm} for what it is of."""
    names = dict.fromkeys(name for columns in systems.values() for name in columns)
    if names and LM not in (path or ""):
        raise UserError(
            f"--scores {path or '(none)'}: with --systems one path with {LM} for the name, as in"
            f" exp/score/{LM}/dev.scores"
        )
    return [f"{name}={path.replace(LM, summed(name))}" for name in names]


def read_scores(
    specs: Sequence[str], systems: Sequence[str] | None, nbests: Sequence[NBest], source
) -> tuple[ScoreColumns, Mapping[str | None, tuple[str, ...]]]:
    """The columns of score files of the lists read from `source`, and which of them each system
    takes; `specs` and `systems` as after --scores and --systems. One system without `systems`,
    called None.
    """
    if not systems:
        columns = read_columns(specs, nbests, source)
        return columns, {None: tuple(columns.values)}
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


def tune_systems(
    systems: Mapping[str, Sequence[str]],
    nbests: Sequence[NBest],
    columns: ScoreColumns,
    features: Features,
    path,
    options: TuningOptions,
    nj: int = 1,
) -> Iterator[tuple[str, Weights]]:
    """The weights of each system, by name, with its facts: `features` are those of the lists read
    from `path` with all `columns`, of which a system takes its own.

    `nj` processes tune. UserError as `tune`.
    """
    dev_set = measure_lists(nbests, options.metric, path)
    work = partial(tune_system, features, tuple(columns.values), dev_set, options)
    for (system, own), weights in zip(
        systems.items(), map_ordered(work, systems.values(), nj), strict=True
    ):
        taken = columns.select(own)
        facts = describe_system(nbests, taken, path)
        yield system, replace(weights, signatures=taken.signatures, system=facts)


def tune_system(
    features: Features,
    columns: Collection[str],
    dev_set: DevSet,
    options: TuningOptions,
    own: Sequence[str],
) -> Weights:
    """The weights of the system that takes its `own` ones of the columns."""
    some = select_columns(features, columns, own)
    lms = (*own, *(("lm",) if "lm" in some.names else ()))
    return tune_features(some, dev_set, replace(options, lms=lms))


def select_columns(features: Features, columns: Collection[str], wanted: Sequence[str]) -> Features:
    """The features with those `columns` alone that are `wanted`, in that order, where columns
    stand.
    """
    first = next((i for i, name in enumerate(features.names) if name in columns), 0)
    return features.select(
        [*features.names[:first], *wanted, *features.names[first + len(columns) :]]
    )
