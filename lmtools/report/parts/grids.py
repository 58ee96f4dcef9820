"""Grids: runs of language models that differ in one thing, as a recipe describes them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.report.parts.models import VALID, Model, sets

CURVES, LINE = "curves", "line"


@dataclass(frozen=True)
class Grid:
    """Runs that differ in one thing: `runs` are models by their label in print, `at` the value of
    each on the axis `x` (of lines), `extra` the names of those that were trained for it alone, `of`
    the groups of those of which the best is drawn.
    """

    name: str
    title: str
    figure: str  # curves or line
    x: str
    runs: Mapping[str, Model]
    at: Mapping[str, float] = field(default_factory=dict)
    extra: tuple[str, ...] = ()
    of: Mapping[str, str] = field(default_factory=dict)

    @property
    def best(self) -> dict[str, str]:
        """The label of the best run on valid, by what is drawn: a group, or a run of none."""
        labels: dict[str, str] = {}
        for label, model in self.runs.items():
            group = self.of.get(label, label)
            first = self.runs[labels.setdefault(group, label)]
            if (model.ppl(VALID) or inf) < (first.ppl(VALID) or inf):
                labels[group] = label
        return labels

    @property
    def drawn(self) -> "Grid":
        """The grid of the best runs alone, under their groups' labels."""
        runs = {group: self.runs[label] for group, label in self.best.items()}
        at = {group: self.at[label] for group, label in self.best.items() if label in self.at}
        return replace(self, runs=runs, at=at, of={})

    @property
    def kinds(self) -> list[str]:
        """Return the kinds of perplexity of its runs: a single kind, unless runs differ in it."""
        kinds = dict.fromkeys(model.kind for model in self.runs.values() if model.figures)
        return list(kinds) or ["perplexity"]

    @property
    def text(self) -> str:
        """The set that its figure speaks of."""
        return next((name for name in sets(self.runs.values()) if name != VALID), VALID)

    @property
    def is_scale(self) -> bool:
        """Return whether the labels of all runs are the values at which they stand."""
        return self.figure == LINE and all(
            label in self.at and label == f"{self.at[label]:g}" for label in self.runs
        )

    @property
    def milestone(self) -> float | None:
        """Return the perplexity that all drawn learning curves reached, by the weakest."""
        drawn = self.drawn.runs.values()
        ends = [min((ppl for _, ppl in model.validations), default=None) for model in drawn]
        curves = self.figure == CURVES and len(self.kinds) == 1
        return max(ends) if curves and None not in ends else None


def grids_of(
    trees: Mapping[Path, Mapping], models: Mapping[str, Model]
) -> tuple[list[Grid], list[str]]:
    """Return the grids with those of their runs that are among `models`, and a line for each grid
    with runs that are not.
    """
    grids, missing = [], []
    for path, tree in trees.items():
        runs, figure = tree.get("runs"), tree.get("figure", CURVES)
        if not isinstance(runs, dict) or not runs:
            raise UserError(
                f"{path}: has no `runs: {{LABEL: NAME, ...}}`; let the recipe write it again"
            )
        if figure not in (CURVES, LINE):
            raise UserError(f"{path}: figure is {figure!r}; expected {CURVES} or {LINE}")
        names = {str(label): str(name) for label, name in runs.items()}
        known = {label: models[name] for label, name in names.items() if name in models}
        if lost := [name for name in names.values() if name not in models]:
            missing.append(
                f"{path.parents[1]}/lm/{', '.join(lost)}: absent, so {path.name} is compared"
                " without (run the recipe's training stage)"
            )
        if known:
            grid = Grid(
                path.stem,
                tree.get("title") or path.stem,
                figure,
                tree.get("x") or path.stem,
                runs=known,
                at=positions(path, known, tree.get("at") or {}) if figure == LINE else {},
                extra=tuple(tree.get("own") or ()),
                of={str(label): str(group) for label, group in (tree.get("of") or {}).items()},
            )
            grids.append(grid)
    # curves first: their figures are as wide as the page
    return sorted(grids, key=lambda grid: grid.figure == LINE), missing


def positions(path: Path, labels: Iterable[str], at: Mapping) -> dict[str, float]:
    """Return the places of the runs on the axis: the value in `at`, or the label where that is a
    number; the others have none.
    """
    given = {str(label): value for label, value in at.items()}
    places = {}
    for label in labels:
        try:
            places[label] = float(given.get(label, label))
        except (TypeError, ValueError):
            if label in given:
                raise UserError(
                    f"{path}: at: {label!r} stands at {given[label]!r}; give a number"
                ) from None
    return places
