"""An experiment in one YAML file: scores, systems that combine them, and options of their tuning;
read by `lmtools score`, `ppl`, `tune`, `rescore`, `embed` and `report`.

    base: experiment.yaml     # a file that this one refines; `NAME: null` takes an entry out
    metric: wer               # and the other options of tuning, as of lmtools tune
    groups: speaker           # whole groups as units of tests too: speaker, or NAME=FILE (utt2NAME)
    planned: [ours]           # systems compared by plan; report corrects p of all others (Holm)
    lms: {bert: hf:DIR}       # language models elsewhere than --lm
    columns:                  # what lmtools score writes, by the options of one call
      tta: {}                 # of the language model tta
      tta-intact: {lm: tta, intact: true}
      channel: {source: true, reverse: true} # a translation model; --source is its source
      mbr: {utility: wer}     # expected utilities instead: options of lmtools mbr
    systems:                  # in printing order: columns, or more of a SystemEntry
      first-pass: []
      tta-mean: [tta/token]
      ours: {columns: [tta], form: interpolation, first_pass: {am: 0.1, lm: 1}, label: Ours}
    vectors: {eos: {lm: causal, pool: eos}} # of sentences, by the options of lmtools embed

A system says which columns of scores it adds to the first pass; all are tuned on one reading of the
lists.
"""

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lmtools.base.config import Place, build, check_choices, convert, list_layers, merge, show_value
from lmtools.base.errors import UserError
from lmtools.base.options import list_options
from lmtools.rescoring.features import LENGTHS, Features, ScoreColumns, read_columns, summed
from lmtools.rescoring.tuning import DevSet
from lmtools.rescoring.tuning_options import FORMS, INTERPOLATION, LINEAR, TuningOptions
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
    return [name for name in names if name in LENGTHS]


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


FIX = "fix"
SECTIONS = ("lms", "columns", "systems", "vectors")
TESTS = ("groups", "planned")
LONGEST = 200  # bytes of a name
UTILITY = "utility"  # which only columns of no language model have


@dataclass(frozen=True)
class SystemEntry:
    """Entry of a system in the file: its plan, and its label and look, as in conf/report.yaml."""

    columns: list[str]
    form: str = LINEAR
    first_pass: dict = field(default_factory=dict)
    label: str | None = None
    look: dict = field(default_factory=dict)

    def __post_init__(self):
        check_choices(self, "", form=FORMS)
        if twice := [name for name in self.columns if self.columns.count(name) > 1]:
            raise UserError(f"columns: {twice[0]!r} stands there twice; leave one out")
        object.__setattr__(self, "first_pass", read_numbers("first_pass", self.first_pass))
        if self.form == INTERPOLATION and len(self.columns) != 1:
            raise UserError(f"form: {INTERPOLATION} is of one column; give one")
        if self.form != INTERPOLATION and self.first_pass:
            raise UserError(f"first_pass: is of form {INTERPOLATION} alone; leave it out")

    @property
    def plan(self) -> SystemPlan:
        return SystemPlan(tuple(self.columns), self.form, self.first_pass)


@dataclass(frozen=True)
class LMEntry:
    """Entry of a column of scores or of vectors: the language model (None: none, for expected
    utilities), whether it reads a source, options of the verb, and its place in the file.
    """

    lm: str | None
    options: Mapping[str, object]
    place: Place
    source: bool = False


@dataclass(frozen=True)
class ExperimentPlan:
    """Content of the file at `place`; mappings by name, in the file's order."""

    tuning: TuningOptions = field(default_factory=TuningOptions)
    lms: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, LMEntry] = field(default_factory=dict)
    systems: Mapping[str, SystemEntry] = field(default_factory=dict)
    vectors: Mapping[str, LMEntry] = field(default_factory=dict)
    groups: str | None = None
    planned: tuple[str, ...] | None = None
    place: Place = field(default_factory=lambda: Place(()))

    @property
    def names(self) -> list[str]:
        """Return language models in their order, each before columns and vectors made with it."""
        entries = (self.columns | self.vectors).items()
        return list(dict.fromkeys(name for n, entry in entries for name in (entry.lm or n, n)))

    @property
    def plans(self) -> dict[str, SystemPlan]:
        return {name: entry.plan for name, entry in self.systems.items()}

    @property
    def trained(self) -> list[str]:
        """Return each language model of the columns that reads no source, in their order."""
        entries = (
            entry for entry in self.columns.values() if entry.lm is not None and not entry.source
        )
        return list(dict.fromkeys(entry.lm for entry in entries))


def read_numbers(name: str, values: Mapping) -> dict[str, float]:
    return {str(key): convert(float, value, name, key) for key, value in values.items()}


def read_experiment(path) -> ExperimentPlan:
    """Read the YAML file `path` and its `base:`; users check the options' names."""
    layers = list_layers(Path(path))
    tree: dict = {}
    for file, layer in layers.items():
        tree = lay_over(tree, layer, Place((file,)))
    top = Place(tuple(layers))
    settings = list_options(TuningOptions)
    for name in tree:
        check_known(name, [*settings, *SECTIONS, *TESTS], top / name, "setting")
    tuning = {key: value for key, value in tree.items() if key in settings}
    for key, value in tuning.items():  # one by one, for the line of the wrong one
        build(TuningOptions, {key: value}, top / key)
    groups = {section: dict(read_entries(tree, section, top)) for section in SECTIONS}
    for name, place in groups["lms"].items():
        if not convert(str, place, top / "lms" / name, name):
            raise UserError(
                f"{top / 'lms' / name}: {name}: nothing stands there; say where the language model"
                " is"
            )
    columns = {
        n: parse_column(n, entry, top / "columns" / n) for n, entry in groups["columns"].items()
    }
    return ExperimentPlan(
        tuning=build(TuningOptions, tuning, top),
        lms={name: str(place) for name, place in groups["lms"].items()},
        columns=columns,
        systems={
            name: parse_system(entry, columns, top / "systems" / name)
            for name, entry in groups["systems"].items()
        },
        vectors={n: parse_lm(n, e, top / "vectors" / n) for n, e in groups["vectors"].items()},
        groups=parse_groups(tree.get("groups"), top / "groups"),
        planned=parse_planned(tree.get("planned"), groups["systems"], top / "planned"),
        place=top,
    )


def parse_groups(groups, place: Place) -> str | None:
    kind, _, path = str(groups).partition("=")
    if groups is None or groups == "speaker" or (kind.isidentifier() and path):
        return groups
    raise UserError(
        f"{place}: groups: {show_value(groups)}; write speaker (the first part of an utterance's"
        " id), or NAME=FILE with Kaldi's utt2NAME"
    )


def parse_planned(names, systems: Collection[str], place: Place) -> tuple[str, ...] | None:
    if names is None:
        return None
    planned = convert(list[str], names, place, "planned")
    for name in planned:
        check_known(name, systems, place, "system")
    return tuple(planned)


def lay_over(lower: dict, layer: Mapping, top: Place) -> dict:
    unset = {name for name, value in layer.items() if value is None} - {*SECTIONS}
    lower = {name: value for name, value in lower.items() if name not in unset}
    upper = {name: value for name, value in layer.items() if value is not None}
    removed = []
    for section in (FIX, *SECTIONS):
        group = upper.get(section, {})
        if not isinstance(group, Mapping):
            raise UserError(f"{top / section}: {section}: expected `NAME: ...` lines")
        for name, entry in group.items():
            if entry is None and name not in lower.get(section, {}):
                raise UserError(
                    f"{top / section / name}: {section}: {name}: null removes what no `base:` has;"
                    " write {}"
                )
            removed += [(section, name)] if entry is None else []
        if section == "systems":
            lists = {n: {"columns": entry} for n, entry in group.items() if isinstance(entry, list)}
            group = {**group, **lists}
        upper |= {section: group} if section in upper else {}
    both = merge(lower, upper)
    for section, name in removed:
        both[section] = {n: entry for n, entry in both[section].items() if n != name}
    return both


def read_entries(tree: Mapping, section: str, top: Place) -> Iterator[tuple[str, object]]:
    """Yield the entries of a section, without null options; UserError for a wrong name."""
    for name, entry in tree.get(section, {}).items():
        place = top / section / name
        check_name(name, place, f"the name in `{section}`")
        if isinstance(entry, Mapping):
            entry = {str(key): value for key, value in entry.items() if value is not None}
        elif section != "lms":
            raise UserError(f"{place}: {section}: {name}: expected `{{name: value, ..}}`")
        yield name, entry


def check_name(name, place: Place, what: str) -> None:
    if not isinstance(name, str):
        raise UserError(f"{place}: {what}, {show_value(name)}, is no text; quote it")
    plain = name.isprintable() and not {*"/ "} & {*name} and name[:1] not in ("", ".")
    if not plain or len(name.encode()) > LONGEST:
        raise UserError(f"{place}: {what}, {name[:80]!a}, cannot name a directory; rename it")


def parse_column(name: str, tree: Mapping, place: Place) -> LMEntry:
    if UTILITY not in tree:
        return parse_lm(name, tree, place)
    for key in ("lm", "source"):
        if key in tree:
            raise UserError(f"{place / key}: {key}: {UTILITY} needs none; leave one of them out")
    return LMEntry(None, tree, place)


def parse_lm(name: str, tree: Mapping, place: Place) -> LMEntry:
    options = {key: value for key, value in tree.items() if key not in ("lm", "source")}
    lm = tree.get("lm", name)
    check_name(lm, place / "lm", "the language model")
    source = convert(bool, tree.get("source", False), place / "source", "source")
    return LMEntry(lm, options, place, source)


def parse_system(tree: Mapping, columns: Collection[str], place: Place) -> SystemEntry:
    for key in tree:
        check_known(key, SystemEntry.__dataclass_fields__, place / key, "setting")
    entry = build(SystemEntry, tree, place)
    for column in entry.columns:
        check_known(summed(column), columns, place / "columns", "column")
    return entry


def check_known(name, known: Collection[str], place: Place, what: str) -> None:
    """Raise UserError for a name that is not known."""
    if name in known:
        return
    close = difflib.get_close_matches(str(name), known, 1)
    remedy = f"did you mean {close[0]}?" if close else f"known: {', '.join(known) or 'none'}"
    raise UserError(f"{place}: unknown {what} {show_value(name)}; {remedy}")


def find_lm(plan: ExperimentPlan, lm: str, template: str) -> str:
    """Return the place of a language model: that of the file, else --lm with its name."""
    return plan.lms[lm] if lm in plan.lms else fill_path(template, "lm", lm)
