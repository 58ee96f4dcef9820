"""Reads what a language-modelling experiment left behind: models, perplexities, grids of runs,
throughput, stages.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

from lmtools.config import load_yaml
from lmtools.errors import UserError
from lmtools.report import experiment
from lmtools.report.artifacts import read_configs, read_json
from lmtools.report.experiment import Artifact, Experiment, count_parameters, read_artifacts
from lmtools.report.lm.models import OTHER, TEST, VALID, Model, family_of, ordered, vocabulary_of
from lmtools.report.names import Names
from lmtools.report.shapes import AMOUNT, ANY, NUMBER, PLAIN, POSITIVE, TEXT, fitting
from lmtools.report.style import Style, load_style

CURVES, LINE = "curves", "line"
BENCH = "bench/lm.json"
RATE = {"median": POSITIVE, "values?": [NUMBER]}
BENCH_ROW = {
    "name": TEXT,
    "model?": TEXT,
    "parameters?": AMOUNT,
    **dict.fromkeys(("flops?", "flops_hidden?"), POSITIVE),
    **dict.fromkeys(("throughput?", "responsiveness?", "contiguous?"), RATE),
}
BENCH_SHAPE = {"rows": [BENCH_ROW]}
GRID_SHAPE = {
    **dict.fromkeys(("title?", "x?", "figure?"), TEXT),
    "runs?": {ANY: PLAIN},
    "at?": {},
    "of?": {ANY: PLAIN},
    "own?": [TEXT],
}


@dataclass(frozen=True)
class Grid:
    """Runs that differ in one thing: `runs` are models by their label in print, `at` the value of
    each on the axis `x` (of lines), `own` the names of those that were trained for it alone, `of`
    the groups of those of which the best is drawn.
    """

    name: str
    title: str
    figure: str  # curves or line
    x: str
    runs: Mapping[str, Model]
    at: Mapping[str, float]
    own: tuple[str, ...] = ()
    of: Mapping[str, str] = field(default_factory=dict)

    @property
    def best(self) -> dict[str, str]:
        """The label of the best run on valid, by what is drawn: a group, or a run of none."""
        found: dict[str, str] = {}
        for label, model in self.runs.items():
            group = self.of.get(label, label)
            first = self.runs[found.setdefault(group, label)]
            if (model.ppl(VALID) or inf) < (first.ppl(VALID) or inf):
                found[group] = label
        return found

    @property
    def drawn(self) -> "Grid":
        """The grid of the best runs alone, under their groups' labels."""
        runs = {group: self.runs[label] for group, label in self.best.items()}
        at = {group: self.at[label] for group, label in self.best.items() if label in self.at}
        return replace(self, runs=runs, at=at, of={})

    @property
    def kinds(self) -> list[str]:
        """Return the kinds of perplexity of its runs: one, unless runs differ in it."""
        return list(dict.fromkeys(model.kind for model in self.runs.values() if model.figures)) or [
            "perplexity"
        ]

    @property
    def text(self) -> str:
        """The set that its figure speaks of."""
        return next((name for name in sets(self.runs.values()) if name != VALID), VALID)


@dataclass(frozen=True, kw_only=True)
class LmExperiment(Experiment):
    """All that the report of a language-modelling experiment speaks of."""

    models: Mapping[str, Model]
    grids: Sequence[Grid]
    bench: Mapping | None

    @property
    def main(self) -> list[Model]:
        """The models that stand for themselves: all but those that were trained for a grid."""
        own = {name for grid in self.grids for name in grid.own}
        return [model for name, model in self.models.items() if name not in own]

    def quantity(self, kind: str, name: str, place: str) -> float | None:
        """Also what `lmtools bench lm` measured on a device, by how that begins."""
        bench = self.bench or {"rows": ()}
        if kind in ("throughput", "responsiveness", "contiguous"):
            row = next((row for row in bench["rows"] if row["name"] == name), {})
            on_device = str(bench.get("device", "")).startswith(place)
            return (row.get(kind) or {}).get("median") if on_device else None
        return super().quantity(kind, name, place)

    @property
    def sizes(self) -> list[str]:
        models = self.models.values()
        return [f"{name}: {size(name, models)}" for name in sets(models)]

    @property
    def hashes(self) -> Mapping[str, str]:
        models = self.models.values()
        return {model.name: value for model in models if (value := signature(model))}


def is_language_modelling(home: Path) -> bool:
    """Return whether directory `home` holds language models or perplexities."""
    return any(home.glob("lm/*/config.yaml")) or any(home.glob("ppl/*/*.json"))


def read_bench(home: Path) -> dict | None:
    """Read the results of `lmtools bench lm`; None without them."""
    return read_json(home / BENCH, BENCH_SHAPE) if (home / BENCH).exists() else None


def read_grids(home: Path) -> dict[Path, dict]:
    """Read the descriptions of grids, by their paths."""
    remedy = "let the recipe write it again"
    paths = sorted(home.glob("grids/*.yaml"))
    return {path: fitting(load_yaml(path), GRID_SHAPE, path, remedy) for path in paths}


ARTIFACTS = {
    "configs": Artifact(
        read_configs,
        "lm/LM/config.yaml: absent, so there is nothing to say of models (`lmtools train` and"
        " `lmtools ngram` write them)",
    ),
    "ppl": experiment.PPL,
    "learning": experiment.LEARNING,
    "grids": Artifact(
        read_grids,
        "grids/GRID.yaml: absent, so no runs are compared that differ in one thing (the recipe's"
        " run.sh writes them)",
    ),
    "bench": Artifact(
        read_bench,
        f"{BENCH}: absent, so there is no table of throughput and responsiveness (`lmtools bench lm"
        " --out` writes it)",
    ),
    "stages": experiment.STAGES,
    "training": experiment.TRAINING,
}


def collect_lms(
    home: Path,
    title: str | None = None,
    command: str = "lmtools report",
    style: Style | None = None,
    apart: Collection[str] = (),
) -> LmExperiment:
    """Collect the language-modelling experiment in directory `home`, without the perplexities of
    the sets `apart`.
    """
    parts, absent = read_artifacts(home, ARTIFACTS)
    parts["ppl"] = {key: tree for key, tree in parts["ppl"].items() if key[1] not in apart}
    rows = (parts["bench"] or {"rows": ()})["rows"]
    names = Names(style or load_style())
    models = models_of(names, parts, {row["name"]: row for row in rows})
    parts["grids"], missing = grids_of(parts["grids"], models)
    return LmExperiment(
        home=home,
        command=command,
        names=names,
        given_title=title,
        models=models,
        absent=(*absent, *missing, *unmeasured(home, models), *unknown(home, models)),
        **parts,
    )


def models_of(
    names: Names, parts: Mapping[str, Mapping], rows: Mapping[str, Mapping] | None = None
) -> dict[str, Model]:
    """Every model with a directory or a perplexity, in printing order, by what configs, learning
    and ppl of `parts` say; `rows`: what was measured of its speed, by name.
    """
    configs, figures, families = parts["configs"], {}, names.style.families
    for (name, text), tree in parts["ppl"].items():
        figures.setdefault(name, {})[text] = tree
    found = []
    for name in sorted(configs.keys() | figures.keys()):
        config = configs.get(name, {})
        facts = config.get("facts") or {}
        vocabulary = vocabulary_of(facts)
        family = family_of(config, vocabulary, names.style)
        title = facts.get("family") if family == OTHER else None
        found.append(
            Model(
                name,
                config,
                parts["learning"].get(name, ()),
                figures.get(name, {}),
                vocabulary,
                count_parameters(config) or (rows or {}).get(name, {}).get("parameters"),
                names.label(name),
                replace(families[family], label=title or families[family].label),
                list(families).index(family),
            )
        )
    return {model.name: model for model in ordered(found)}


def grids_of(
    trees: Mapping[Path, Mapping], models: Mapping[str, Model]
) -> tuple[list[Grid], list[str]]:
    """Return the grids with those of their runs that are among `models`, and a line for each grid
    with runs that are not.
    """
    grids, missing = [], []
    for path, tree in trees.items():
        runs = tree.get("runs")
        if not isinstance(runs, dict) or not runs:
            raise UserError(
                f"{path}: has no `runs: {{LABEL: NAME, ...}}`; let the recipe write it again"
            )
        if tree.get("figure", CURVES) not in (CURVES, LINE):
            raise UserError(f"{path}: figure is {tree['figure']!r}; expected {CURVES} or {LINE}")
        names = {str(label): str(name) for label, name in runs.items()}
        there = {label: models[name] for label, name in names.items() if name in models}
        if lost := [name for name in names.values() if name not in models]:
            missing.append(
                f"{path.parents[1]}/lm/{', '.join(lost)}: absent, so {path.name} is compared"
                " without (run the recipe's training stage)"
            )
        if there:
            figure = tree.get("figure", CURVES)
            values = positions(path, there, tree.get("at") or {}) if figure == LINE else {}
            grids.append(
                Grid(
                    path.stem,
                    tree.get("title") or path.stem,
                    figure,
                    tree.get("x") or path.stem,
                    there,
                    values,
                    tuple(tree.get("own") or ()),
                    {str(label): str(group) for label, group in (tree.get("of") or {}).items()},
                )
            )
    # curves first: their figures are as wide as the page
    return sorted(grids, key=lambda grid: grid.figure == LINE), missing


def positions(path: Path, labels: Iterable[str], at: Mapping) -> dict[str, float]:
    """Return the places of the runs on the axis: the value in `at`, or the label where that is a
    number; the others have none.
    """
    given = {str(label): value for label, value in at.items()}
    found = {}
    for label in labels:
        try:
            found[label] = float(given.get(label, label))
        except (TypeError, ValueError):
            if label in given:
                raise UserError(
                    f"{path}: at: {label!r} stands at {given[label]!r}; give a number"
                ) from None
    return found


def unmeasured(home: Path, models: Mapping[str, Model]) -> list[str]:
    """Return a line for models that were trained but have no perplexity, where others have one."""
    lost = [name for name, model in models.items() if not model.figures]
    if not lost or len(lost) == len(models):
        return []
    return [
        f"{home}/ppl/{', '.join(lost)}: absent, so their perplexity is not known (`lmtools ppl"
        " --out` writes it)"
    ]


def unknown(home: Path, models: Mapping[str, Model]) -> list[str]:
    """Return a line for models whose config.yaml an older version wrote."""
    lost = [name for name, model in models.items() if model.config and "facts" not in model.config]
    return [
        f"{home}/lm/{', '.join(lost)}: config.yaml is of an older version and does not say how many"
        " parameters and which vocabulary they have (train into a new directory to have it)"
    ] * bool(lost)


def sets(models: Iterable[Model]) -> list[str]:
    """Return the sets that perplexities are known of: valid, test, then others."""
    names = {name for model in models for name in model.figures}
    return [name for name in (VALID, TEST) if name in names] + sorted(names - {VALID, TEST})


def size(name: str, models: Iterable[Model]) -> str:
    """Return the sentences and words of a set, as the models' perplexities count them; those that
    differ stand side by side.
    """
    counts = dict.fromkeys(
        (tree.get("sentences"), tree.get("words"))
        for model in models
        if (tree := model.figures.get(name))
    )
    return (
        " or ".join(
            f"{sentences:,} sentences, {words:,} words"
            for sentences, words in counts
            if sentences and words
        )
        or "size unknown"
    )


def signature(model: Model) -> str:
    """Return the model's hash, as its perplexities say; nothing where they do not."""
    return next(
        (
            str(value)
            for tree in model.figures.values()
            if (value := (tree.get("signature") or {}).get("model"))
        ),
        "",
    )


def rules(models: Iterable[Model]) -> Iterator[str]:
    """By what rules the perplexities were taken, with the models of each where there are
    several.
    """
    found: dict[str, list[str]] = {}
    for model in models:
        for rule in dict.fromkeys(
            tree["rules"] for tree in model.figures.values() if tree.get("rules")
        ):
            found.setdefault(rule, []).append(model.name)
    for rule, names in found.items():
        yield f"{', '.join(names)}: {rule}." if len(found) > 1 else f"{rule[:1].upper()}{rule[1:]}."
