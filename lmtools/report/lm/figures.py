"""The figures of a language-modelling experiment, in the shape of Figures 2-6 of the GCNN paper;
every line says at its end whose it is.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from lmtools.report.lm.experiment import CURVES, Grid, LmExperiment
from lmtools.report.lm.models import TEST, VALID, Model
from lmtools.report.lm.speeds import speed_pictures
from lmtools.report.lm.tables import LEFT_TO_RIGHT, SHORT, titles_of
from lmtools.report.page.drawing import Picture, Theme
from lmtools.report.page.labels import (
    EDGE,
    HUGE,
    UNITS,
    beside_ends,
    curve,
    logarithmic,
    plain_ticks,
    printed,
)
from lmtools.report.style import Look

ABOVE = 2.0  # times the highest end: how far up a learning curve is shown
FEW = 12  # labels beside axes of the usual height


def work_pictures(experiment: LmExperiment) -> Iterator[Picture]:
    """Perplexity against multiply-adds a token, one point a left-to-right model (GCNN Figure 2)."""
    models = [model for model in experiment.models.values() if model.kind == LEFT_TO_RIGHT]
    text = TEST if any(model.ppl(TEST) for model in models) else VALID
    work = {row["name"]: row.get("flops") for row in (experiment.bench or {"rows": ()})["rows"]}
    points = {
        model: (work[model.name] / 1e6, ppl)
        for model in models
        if work.get(model.name) and (ppl := model.ppl(text))
    }
    if len(points) > 1:
        names = {model: titles_of(experiment).get(model.name, model.label) for model in points}
        said = ", ".join(
            f"{names[model]} {at:,.4g} M and {printed(ppl)}" for model, (at, ppl) in points.items()
        )
        yield Picture(
            "work",
            f"Word perplexity on {text} against the multiply-adds that a token takes in scoring,"
            " output layer included; the number is the perplexity (compare Figure 2 of the GCNN"
            f" paper). {EDGE}",
            f"Multiply-adds a token and perplexity on {text}: {said}.",
            lambda theme: draw_work(theme, points, names, text),
        )


def draw_work(
    theme: Theme, points: Mapping[Model, tuple[float, float]], names: Mapping[Model, str], text: str
) -> Figure:
    figure = Figure((6.6, height(len(points))))
    axes = figure.subplots()
    top = scaled(axes, [ppl for _, ppl in points.values()], 1)
    edge, labels = axes.get_ylim()[1], []
    wide(axes, [at for at, _ in points.values()])
    for model, (at, ppl) in points.items():
        y = ppl if ppl <= top else edge
        mark(axes, theme, model.look, [at], [y])
        labels.append((model.look, at, y, f"{names[model]}  {printed(ppl)}"))
    beside_ends(axes, theme, labels, 1.04)
    axes.set_xlabel("million multiply-adds a token")
    axes.set_ylabel(f"word perplexity on {text} (log scale)")
    return figure


def scaled(axes, ends: Sequence[float], above: float) -> float:
    """Scale an axis by `logarithmic`, with ticks at round numbers where it spans no decade."""
    top = logarithmic(axes, ends, above)
    if top < 20 * min(ends):
        axes.yaxis.set_major_locator(MaxNLocator(7, steps=(1, 2, 2.5, 5, 10)))
    return top


def wide(axes, values: Sequence[float], ticks: bool = False) -> None:
    """Start an axis at 0, or make it logarithmic for values of different orders; with `ticks` each
    value has its tick.
    """
    low, high = min(values), max(values)
    if low > 0 and high > 8 * low:
        margin = (high / low) ** 0.06
        axes.set_xscale("log")
        axes.set_xlim(low / margin, high * margin)
        plain_ticks(axes.xaxis)
    else:
        axes.set_xlim(min(0, 1.06 * low), 1.06 * high)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    if ticks:
        axes.xaxis.set_major_locator(FixedLocator(sorted(set(values))))
        axes.xaxis.set_minor_locator(NullLocator())


def mark(axes, theme: Theme, look: Look, x, y, **more) -> None:
    """Draw a line in its own look with marks at its points."""
    size = 9 if look.marker == "*" else 5.5
    style = {"marker": look.marker, "markersize": size, "linestyle": look.line}
    axes.plot(x, y, color=theme.color(look), clip_on=len(x) > 1, **style, **more)


def height(labels: int) -> float:
    """Inches that so many labels at the ends of lines want."""
    return 4.4 if labels <= FEW else 4.4 * labels / FEW


def grid_pictures(experiment: LmExperiment) -> Iterator[Picture]:
    """For each grid its learning curves (Figures 3, 5, 6) or its line (Figure 4, and the sizes of
    piece vocabularies).
    """
    for grid in experiment.grids:
        said = (
            f" Of the runs of a group the best on valid is drawn: {'; '.join(grid.best.values())}."
            if grid.of
            else ""
        )
        yield from (
            curve_pictures(experiment, grid.drawn, f"grid-{grid.name}", "grids", said)
            if grid.figure == CURVES
            else line_pictures(experiment, grid.drawn, said)
        )


def learning_pictures(experiment: LmExperiment) -> Iterator[Picture]:
    """Learning curves of the models outside grids, those together that have the same kind of
    perplexity.
    """
    for kind in SHORT:
        models = {
            model.label: model for model in experiment.main if model.kind == kind and model.lines
        }
        title = "Learning curves" if kind == LEFT_TO_RIGHT else f"Learning curves, {kind}"
        if models:
            yield from curve_pictures(
                experiment,
                Grid("", title, CURVES, "", models, {}),
                f"learning-{SHORT[kind].replace(' ', '-')}",
                "figures",
            )


def curve_pictures(
    experiment: LmExperiment, grid: Grid, name: str, part: str, note: str = ""
) -> Iterator[Picture]:
    """Validation perplexity of each run over updates and over training time; the caption ends with
    `note`.
    """
    curves = {label: points for label, model in grid.runs.items() if len(points := progress(model))}
    lost = [label for label in grid.runs if label not in curves]
    if not curves:
        return
    ends = ", ".join(f"{label} {printed(points[-1, 2])}" for label, points in curves.items())
    missing = (
        f" Without a finite validation loss, and so not shown: {', '.join(lost)}." if lost else ""
    )
    yield Picture(
        name,
        f"{grid.title}: perplexity of a prediction on the validation text over updates and over the"
        " time spent in training steps; the number is where a training ended."
        f" {EDGE}{missing}{note}",
        f"{grid.title}, validation perplexity at the end of training: {ends}.",
        lambda theme: draw_curves(theme, experiment, grid, curves),
        wide=True,
        part=part,
    )


def progress(model: Model) -> np.ndarray:
    """Updates, seconds of training and validation perplexity (validations, 3), as far as it is
    finite.
    """
    steps = [line["step"] for line in model.lines if line.get("valid_loss", HUGE) < HUGE]
    timed = curve(model.lines)
    return np.column_stack([steps, timed]) if len(timed) else np.empty((0, 3))


def draw_curves(
    theme: Theme, experiment: LmExperiment, grid: Grid, curves: Mapping[str, np.ndarray]
) -> Figure:
    figure = Figure((11.5, height(len(curves))))
    panels = figure.subplots(1, 2, sharey=True)
    top = scaled(panels[0], [points[-1, 2] for points in curves.values()], ABOVE)
    edge, longest = panels[0].get_ylim()[1], max(points[-1, 1] for points in curves.values())
    unit, name = next((unit, name) for least, unit, name in UNITS if longest >= least)
    styles = looks(grid, experiment.names.style.runs)
    for axes, column, scale in zip(panels, (0, 1), (1, unit), strict=True):
        labels = []
        for label, points in curves.items():
            x, y = (
                (points[:, column] / scale, points[:, 2])
                if points[-1, 2] <= top
                else (points[-1:, column] / scale, [edge])
            )
            mark(axes, theme, styles[label], x, y, markevery=max(1, len(x) // 10))
            labels.append((styles[label], x[-1], y[-1], f"{label}  {printed(points[-1, 2])}"))
        axes.set_xlim(0, 1.03 * max(points[-1, column] for points in curves.values()) / scale)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    beside_ends(panels[1], theme, labels, 1.04)
    panels[0].set_xlabel("updates")
    panels[1].set_xlabel(f"training time ({name})")
    panels[0].set_ylabel("validation perplexity (a prediction, log scale)")
    return figure


def looks(grid: Grid, runs: Sequence[Look]) -> dict[str, Look]:
    """Return the look of each run: that of its family where no other run is of it."""
    families = [model.family for model in grid.runs.values()]
    if len(set(families)) == len(families):
        return {label: model.look for label, model in grid.runs.items()}
    return {label: runs[i % len(runs)] for i, label in enumerate(grid.runs)}


def line_pictures(experiment: LmExperiment, grid: Grid, note: str) -> Iterator[Picture]:
    """Perplexity over the value that the runs differ in: a line a series, and level lines for runs
    without such a value; the caption ends with `note`.
    """
    text = grid.text
    ppl = {label: model.ppl(text) for label, model in grid.runs.items() if model.ppl(text)}
    series, level = split(grid, ppl)
    if not series:
        return
    said = ", ".join(f"{label} {printed(value)}" for label, value in ppl.items())
    dashed = f" Dashed: {', '.join(level)}, which the axis does not apply to." if level else ""
    yield Picture(
        f"grid-{grid.name}",
        f"{grid.title}: word {grid.kinds[0]} on {text} by {grid.x}; the number is that of the last"
        f" point.{dashed}{note}",
        f"{grid.title}, {grid.kinds[0]} on {text}: {said}.",
        lambda theme: draw_line(
            theme, experiment, grid, text, series, {label: ppl[label] for label in level}
        ),
        part="grids",
    )


def split(
    grid: Grid, ppl: Mapping[str, float]
) -> tuple[dict[str, list[tuple[float, float]]], list[str]]:
    """Points (value, perplexity) by series, and the labels of runs with no place on the axis.

    A series is what labels have in common without their value: `bpe-500` and `bpe-1000` are of
    `bpe`.
    """
    series: dict[str, list[tuple[float, float]]] = {}
    for label, value in ppl.items():
        if label in grid.at:
            series.setdefault(stem(label, grid.at[label]), []).append((grid.at[label], value))
    return {name: sorted(points) for name, points in series.items()}, [
        label for label in ppl if label not in grid.at
    ]


def stem(label: str, value: float) -> str:
    """Return `label` without the last `value` in it; nothing where it has none."""
    found = list(re.finditer(rf"(?<![\d.]){re.escape(f'{value:.15g}')}(?:\.0+)?(?![\d.])", label))
    return (label[: found[-1].start()] + label[found[-1].end() :]).strip(" -_,:=@") if found else ""


def draw_line(
    theme: Theme,
    experiment: LmExperiment,
    grid: Grid,
    text: str,
    series: Mapping,
    level: Mapping[str, float],
) -> Figure:
    figure = Figure((6.6, 4.4))
    axes = figure.subplots()
    values = [ppl for points in series.values() for _, ppl in points]
    top = scaled(axes, [*values, *level.values()], 1)
    edge, at = axes.get_ylim()[1], [x for points in series.values() for x, _ in points]
    wide(axes, at, ticks=True)
    styles, labels = iter(experiment.names.style.runs), []
    for name, points in series.items():
        look = next(styles)
        x, y = np.array(points).T
        mark(axes, theme, look, x, np.minimum(y, edge))
        labels.append((look, x[-1], min(y[-1], edge), f"{name}  {printed(y[-1])}".strip()))
    for label, ppl in level.items():
        look, y = next(styles), ppl if ppl <= top else edge
        axes.axhline(y, color=theme.color(look), linestyle="--", linewidth=1.3)
        labels.append((look, axes.get_xlim()[1], y, f"{label}  {printed(ppl)}"))
    beside_ends(axes, theme, labels, 1.04)
    axes.set_xlabel(grid.x)
    axes.set_ylabel(f"word {grid.kinds[0]} on {text} (log scale)")
    return figure


LM_PICTURES: dict[str, Callable[[LmExperiment], Iterator[Picture]]] = {
    "work": work_pictures,
    "grid": grid_pictures,
    "learning": learning_pictures,
    "speed": speed_pictures,
}
