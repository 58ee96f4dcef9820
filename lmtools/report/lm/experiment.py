"""Reads what a language-modelling experiment left behind: models, perplexities, grids of runs,
throughput, stages.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmtools.config import load_yaml
from lmtools.corpus import Header, read_header
from lmtools.errors import UserError
from lmtools.report.artifacts import (
    numbered,
    read_configs,
    read_json,
    read_manifest,
    read_metrics,
    read_ppl,
)
from lmtools.report.lm.models import TEST, VALID, Model, count_parameters, ordered, vocabulary_of
from lmtools.report.rescoring.experiment import default_title
from lmtools.report.shapes import fitting

SET_ASIDE = re.compile(r"(.+)\.\d+")  # what `lmtools train` makes room for
CURVES, LINE = "curves", "line"
BENCH, WEIGHTS = "bench/lm.json", "model.safetensors"


@dataclass(frozen=True)
class Grid:
    """Runs that differ in one thing: `runs` are models by their label in print, `at` the value of
    each on the axis `x` (of lines).
    """

    name: str
    title: str
    figure: str  # curves or line
    x: str
    runs: Mapping[str, Model]
    at: Mapping[str, float]

    @property
    def kinds(self) -> list[str]:
        """What the perplexities of its runs are: one kind, unless runs differ in it."""
        return list(dict.fromkeys(model.kind for model in self.runs.values() if model.figures)) or [
            "perplexity"
        ]

    @property
    def text(self) -> str:
        """The set that its figure speaks of."""
        return next((name for name in sets(self.runs.values()) if name != VALID), VALID)


@dataclass(frozen=True)
class LmExperiment:
    """All that the report of a language-modelling experiment speaks of; what is absent is named in
    `absent`.
    """

    home: Path
    title: str
    corpus: str | None  # the recipe's option
    models: Mapping[str, Model]
    grids: Sequence[Grid]
    bench: Mapping | None
    stages: Sequence[Mapping]
    training: Header | None
    absent: tuple[str, ...]

    @property
    def main(self) -> list[Model]:
        """The models that stand for themselves: all but the runs that are called after their grid,
        GRID-LABEL.
        """
        varied = {
            model.name
            for grid in self.grids
            for model in grid.runs.values()
            if model.name.startswith(f"{grid.name}-")
        }
        return [model for name, model in self.models.items() if name not in varied]


ABSENT = {
    "models": (
        "lm/LM/config.yaml: absent, so there is nothing to say of models (`lmtools train` and"
        " `lmtools ngram` write them)"
    ),
    "ppl": (
        "ppl/LM/SET.json: absent, so there is no table of perplexities (`lmtools ppl --out` writes"
        " them)"
    ),
    "learning": (
        "lm/LM/metrics.jsonl: absent, so there are no learning curves (`lmtools train` writes them)"
    ),
    "grids": (
        "grids/GRID.yaml: absent, so no runs are compared that differ in one thing (the recipe's"
        " run.sh writes them)"
    ),
    "bench": (
        f"{BENCH}: absent, so there is no table of throughput and responsiveness (`lmtools bench lm"
        " --out` writes it)"
    ),
    "stages": (
        "stages/N.json: absent, so it is not known how the time divides (the recipe's run.sh writes"
        " them)"
    ),
}


def is_language_modelling(home: Path) -> bool:
    """Whether directory `home` holds language models or perplexities."""
    return any(home.glob("lm/*/config.yaml")) or any(home.glob("ppl/*/*.json"))


def collect_lms(home: Path, title: str | None = None) -> LmExperiment:
    """The language-modelling experiment in directory `home`."""
    if not home.is_dir():
        raise UserError(
            f"{home}: no such directory; give the experiment's directory, which run.sh calls exp"
        )
    stages = [read_manifest(path) for path in numbered(home / "stages")]
    bench = read_json(home / BENCH, "bench") if (home / BENCH).exists() else None
    models = read_lms(home, {row["name"]: row for row in bench["rows"]} if bench else {})
    grids, missing = read_grids(home, models)
    parts = {
        "models": [model for model in models.values() if model.config],
        "ppl": [model for model in models.values() if model.figures],
        "learning": [model for model in models.values() if model.lines],
        "grids": grids, "bench": bench, "stages": stages,
    }  # fmt: skip
    absent = [f"{home}/{ABSENT[name]}" for name, part in parts.items() if not part]
    corpus = next(
        (stage["options"]["corpus"] for stage in stages if stage.get("options", {}).get("corpus")),
        None,
    )
    absent += [*missing, *unmeasured(home, models)]
    return LmExperiment(
        home,
        title or default_title(home, stages),
        corpus,
        models,
        grids,
        bench,
        stages,
        read_training(home),
        tuple(absent),
    )


def read_lms(home: Path, rows: Mapping[str, Mapping]) -> dict[str, Model]:
    """Every model with a directory or a perplexity, in printing order; `rows`: what was measured of
    its speed, by name.
    """
    configs, figures = read_configs(home), {}
    for (name, text), tree in read_ppl(home).items():
        figures.setdefault(name, {})[text] = tree
    found = []
    for name in sorted(configs.keys() | figures.keys()):
        if SET_ASIDE.fullmatch(name) and SET_ASIDE.fullmatch(name)[1] in configs:
            continue
        folder = home / "lm" / name
        metrics, config = folder / "metrics.jsonl", configs.get(name, {})
        lines = read_metrics(metrics) if metrics.exists() else ()
        size = parameters(folder, config, rows.get(name, {}))
        found.append(Model(name, config, lines, figures.get(name, {}), vocabulary_of(folder), size))
    return {model.name: model for model in ordered(found)}


def parameters(folder: Path, config: Mapping, row: Mapping) -> int | None:
    """How many numbers a model learnt; of an n-gram model its n-grams."""
    if config.get("kind") == "ngram":
        return sum(config.get("counts") or ()) or None
    weights = folder / WEIGHTS
    return count_parameters(weights) if weights.exists() else row.get("parameters")


def read_grids(home: Path, models: Mapping[str, Model]) -> tuple[list[Grid], list[str]]:
    """The grids of `home` with those of their runs that are there, and a line for each grid with
    runs that are not.
    """
    grids, missing = [], []
    for path in sorted(home.glob("grids/*.yaml")):
        tree = fitting(load_yaml(path), "grid", path, "let the recipe write it again")
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
                f"{home}/lm/{', '.join(lost)}: absent, so {path.name} is compared without (run the"
                " recipe's training stage)"
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
                )
            )
    # curves first: their figures are as wide as the page
    return sorted(grids, key=lambda grid: grid.figure == LINE), missing


def positions(path: Path, labels: Iterable[str], at: Mapping) -> dict[str, float]:
    """Where the runs stand on the axis: at the value in `at`, or at their label where that is a
    number; the others stand nowhere.
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
    """A line for models that were trained but have no perplexity, where others have one."""
    lost = [name for name, model in models.items() if not model.figures]
    if not lost or len(lost) == len(models):
        return []
    return [
        f"{home}/ppl/{', '.join(lost)}: absent, so their perplexity is not known (`lmtools ppl"
        " --out` writes it)"
    ]


def read_training(home: Path) -> Header | None:
    """What the training corpus says of itself: that of words, or the first there is."""
    paths = sorted(
        home.glob("corpus/*/train.bin"),
        key=lambda path: (path.parent.name != "words", path.parent.name),
    )
    return read_header(paths[0])[0] if paths else None


def sets(models: Iterable[Model]) -> list[str]:
    """The sets that perplexities are known of: valid, test, then others."""
    names = {name for model in models for name in model.figures}
    return [name for name in (VALID, TEST) if name in names] + sorted(names - {VALID, TEST})
