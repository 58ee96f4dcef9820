"""The figures of language models by themselves, in the shape of Figures 2-6 and Table 4 of the GCNN
paper; every line says at its end whose it is.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from lmtools.report.experiment import Experiment
from lmtools.report.page.drawing import PLAIN, Picture, Theme, chart, plain_ticks, write_right_of
from lmtools.report.page.ends import EDGE, ROUND, EndPanel, end_panel, scale_of, show_ppl
from lmtools.report.page.table import decimal
from lmtools.report.parts.grids import CURVES, Grid
from lmtools.report.parts.models import HUGE, OTHER, TEST, VALID, Model, curve
from lmtools.report.rows import BENCH
from lmtools.report.style import Look
from lmtools.report.tables.lms import LEFT_TO_RIGHT, SHORT, median, title_of

ABOVE = 2.0  # times the highest end: how far up a learning curve is shown
FEW = 12  # labels beside axes of the usual height
SPEEDS = BENCH[:2]
WORK = (
    "against the multiply-adds that a token takes in scoring, output layer included; the number is"
    f" the perplexity (compare Figure 2 of the GCNN paper). {EDGE}"
)
CURVE = (
    "perplexity of a prediction on the validation text over updates and over the time spent in"
    f" training steps; the number is where a training ended. {EDGE}"
)
SPEED = (
    "throughput of a batch of sequences, responsiveness of one sequence at a time (compare Table 4"
    " of the GCNN paper). Equal lengths are equal factors; lines span the turns."
)


def work_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield perplexity against multiply-adds a token, one point a left-to-right model (GCNN Figure
    2).
    """
    models = [model for model in experiment.models.values() if model.kind == LEFT_TO_RIGHT]
    text = TEST if any(model.ppl(TEST) for model in models) else VALID
    work = {row["name"]: row.get("flops") for row in (experiment.bench or {"rows": ()})["rows"]}
    points = {
        model: (work[model.name] / 1e6, ppl)
        for model in models
        if work.get(model.name) and (ppl := model.ppl(text))
    }
    if len(points) > 1:
        names = {model: title_of(experiment, model.name) for model in points}
        pairs = [f"{names[m]} {at:,.4g} M and {show_ppl(ppl)}" for m, (at, ppl) in points.items()]
        yield Picture(
            "work",
            f"Word perplexity on {text} {WORK}",
            f"Multiply-adds a token and perplexity on {text}: {', '.join(pairs)}.",
            partial(draw_work, points, names, text),
        )


def draw_work(points: Mapping, names: Mapping[Model, str], text: str, theme: Theme) -> Figure:
    """Draw a labelled point a model."""
    y = f"word perplexity on {text} (log scale)"
    figure, axes = chart((6.6, height(len(points))), "million multiply-adds a token", y)
    panel = end_panel(axes, theme, [ppl for _, ppl in points.values()], 1, steps=ROUND)
    widen(axes, [at for at, _ in points.values()])
    for model, (at, ppl) in points.items():
        panel.line(model.shown.look, names[model], [at], [ppl])
    panel.write()
    return figure


def widen(axes, values: Sequence[float], ticks: bool = False) -> None:
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
        axes.xaxis.set_major_formatter(PLAIN)
    if ticks:
        axes.xaxis.set_major_locator(FixedLocator(sorted(set(values))))
        axes.xaxis.set_minor_locator(NullLocator())


def height(labels: int) -> float:
    """Return the inches that so many labels at the ends of lines want."""
    return 4.4 if labels <= FEW else 4.4 * labels / FEW


def grid_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield for each grid its learning curves (Figures 3, 5, 6) or its line (Figure 4, and the
    sizes of piece vocabularies).
    """
    for grid in experiment.grids:
        best = "; ".join(grid.best.values())
        note = f" Of the runs of a group the best on valid is drawn: {best}." if grid.of else ""
        if grid.figure == CURVES:
            yield from curve_pictures(
                experiment, grid.drawn, f"grid-{grid.name}", "grids", note=note
            )
        else:
            yield from line_pictures(experiment, grid.drawn, note)


def learning_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield learning curves of the models outside grids, those together that have the same kind of
    perplexity.
    """
    for kind, short in SHORT.items():
        models = {m.label: m for m in experiment.main if m.kind == kind and m.lines}
        title = "Learning curves" if kind == LEFT_TO_RIGHT else f"Learning curves, {kind}"
        if models:
            name, grid = (
                f"learning-{short.replace(' ', '-')}",
                Grid("", title, CURVES, "", runs=models),
            )
            yield from curve_pictures(experiment, grid, name)


def curve_pictures(
    experiment: Experiment, grid: Grid, name: str, part: str = "figures", note: str = ""
) -> Iterator[Picture]:
    """Yield validation perplexity of each run over updates and over training time; the caption ends
    with `note`.
    """
    curves = {label: points for label, model in grid.runs.items() if len(points := progress(model))}
    lost = [label for label in grid.runs if label not in curves]
    if curves:
        ends = [f"{label} {show_ppl(points[-1, 2])}" for label, points in curves.items()]
        missing = f" Without a finite validation loss, and so not shown: {', '.join(lost)}."
        yield Picture(
            name,
            f"{grid.title}: {CURVE}{missing * bool(lost)}{note}",
            f"{grid.title}, validation perplexity at the end of training: {', '.join(ends)}.",
            partial(draw_curves, find_looks(grid, experiment.names.style.runs), curves),
            wide=True,
            part=part,
        )


def progress(model: Model) -> np.ndarray:
    """Return updates, seconds of training and validation perplexity (validations, 3), as far as it
    is finite.
    """
    steps = [line["step"] for line in model.lines if line.get("valid_loss", HUGE) < HUGE]
    timed = curve(model.lines)
    return np.column_stack([steps, timed]) if len(timed) else np.empty((0, 3))


def draw_curves(
    looks: Mapping[str, Look], curves: Mapping[str, np.ndarray], theme: Theme
) -> Figure:
    """Draw learning curves over updates and over time, labelled at the right."""
    figure = Figure((11.5, height(len(curves))))
    panels = figure.subplots(1, 2, sharey=True)
    first = end_panel(panels[0], theme, [p[-1, 2] for p in curves.values()], ABOVE, steps=ROUND)
    unit, name = scale_of(max(points[-1, 1] for points in curves.values()))
    for axes, column, scale in zip(panels, (0, 1), (1, unit), strict=True):
        panel = EndPanel(axes, theme, first.top)
        for label, points in curves.items():
            shown = len(points) if points[-1, 2] <= first.top else 1
            x, every = points[:, column] / scale, max(1, shown // 10)
            panel.line(looks[label], label, x, points[:, 2], markevery=every)
        axes.set_xlim(0, 1.03 * max(points[-1, column] for points in curves.values()) / scale)
        axes.xaxis.set_major_formatter(PLAIN)
    panel.write()
    panels[0].set_xlabel("updates")
    panels[1].set_xlabel(f"training time ({name})")
    panels[0].set_ylabel("validation perplexity (a prediction, log scale)")
    return figure


def find_looks(grid: Grid, runs: Sequence[Look]) -> dict[str, Look]:
    """Return the look of each run: that of its family where no other run is of it."""
    families = [model.shown.label for model in grid.runs.values()]
    if len(set(families)) == len(families):
        return {label: model.shown.look for label, model in grid.runs.items()}
    return {label: runs[i % len(runs)] for i, label in enumerate(grid.runs)}


def line_pictures(experiment: Experiment, grid: Grid, note: str) -> Iterator[Picture]:
    """Yield perplexity over the value that the runs differ in: a line a series, and level lines for
    runs without such a value; the caption ends with `note`.
    """
    text, kind = grid.text, grid.kinds[0]
    ppl = {label: model.ppl(text) for label, model in grid.runs.items() if model.ppl(text)}
    series, level = split(grid, ppl)
    if series:
        values = [f"{label} {show_ppl(value)}" for label, value in ppl.items()]
        dashed = f" Dashed: {', '.join(level)}, which the axis does not apply to." if level else ""
        yield Picture(
            f"grid-{grid.name}",
            f"{grid.title}: word {kind} on {text} by {grid.x}; the number is that of the last"
            f" point.{dashed}{note}",
            f"{grid.title}, {kind} on {text}: {', '.join(values)}.",
            partial(draw_line, experiment.names.style.runs, grid, series, level),
            part="grids",
        )


def split(grid: Grid, ppl: Mapping[str, float]) -> tuple[dict[str, list], dict[str, float]]:
    """Return points (value, perplexity) by series, and the perplexities of runs with no place on
    the axis.

    A series is what labels have in common without their value: `bpe-500` and `bpe-1000` are of
    `bpe`.
    """
    series: dict[str, list[tuple[float, float]]] = {}
    for label, value in ppl.items():
        if label in grid.at:
            series.setdefault(stem(label, grid.at[label]), []).append((grid.at[label], value))
    level = {label: value for label, value in ppl.items() if label not in grid.at}
    return {name: sorted(points) for name, points in series.items()}, level


def stem(label: str, value: float) -> str:
    """Return `label` without the last `value` in it; nothing where it has none."""
    number = rf"(?<![\d.]){re.escape(f'{value:.15g}')}(?:\.0+)?(?![\d.])"
    places = [match.span() for match in re.finditer(number, label)]
    return (label[: places[-1][0]] + label[places[-1][1] :]).strip(" -_,:=@") if places else ""


def draw_line(
    runs: Sequence[Look], grid: Grid, series: Mapping, level: Mapping[str, float], theme: Theme
) -> Figure:
    """Draw a line a series and a dashed level line a run without a value."""
    figure, axes = chart((6.6, 4.4), grid.x, f"word {grid.kinds[0]} on {grid.text} (log scale)")
    points = [point for values in series.values() for point in values]
    panel = end_panel(axes, theme, [*(ppl for _, ppl in points), *level.values()], 1, steps=ROUND)
    widen(axes, [at for at, _ in points], ticks=True)
    looks, edge = iter(runs), panel.edge
    for name, values in series.items():
        look, (x, y) = next(looks), np.array(values).T
        panel.mark(look, x, np.minimum(y, edge))
        text = f"{name}  {show_ppl(y[-1])}".strip()
        panel.labels.append((look, x[-1], min(y[-1], edge), text))
    for label, ppl in level.items():
        look, y = next(looks), ppl if ppl <= panel.top else edge
        axes.axhline(y, color=theme.color(look), linestyle="--", linewidth=1.3)
        panel.labels.append((look, axes.get_xlim()[1], y, f"{label}  {show_ppl(ppl)}"))
    panel.write()
    return figure


def speed_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield throughput and responsiveness of each model, as bars (GCNN Table 4)."""
    bench = experiment.bench or {"rows": ()}
    rows = [row for row in bench["rows"] if any(median(row, key) for key in SPEEDS)]
    if rows:
        names = [title_of(experiment, row["name"]) for row in rows]
        throughput, responsiveness = (
            ", ".join(
                f"{n} {show_rate(median(row, key))}" for n, row in zip(names, rows, strict=True)
            )
            for key in SPEEDS
        )
        yield Picture(
            "speed",
            f"Tokens a second in scoring, {bench.get('threads', '?')} thread(s),"
            f" {bench.get('device', 'device unknown')}, {bench.get('machine', 'machine unknown')}:"
            f" {SPEED}",
            f"Throughput in tokens a second: {throughput}. Responsiveness: {responsiveness}.",
            partial(draw_speed, names, rows, [find_look(experiment, row) for row in rows]),
            wide=True,
        )


def find_look(experiment: Experiment, row: Mapping) -> Look:
    """Return the look of a row's model: of its family, known by its own directory or by what the
    bench calls it.
    """
    if row["name"] in experiment.models:
        return experiment.models[row["name"]].shown.look
    families = experiment.names.style.families
    return families[row.get("model") if row.get("model") in families else OTHER].look


def draw_speed(
    names: Sequence[str], rows: Sequence[Mapping], looks: Sequence[Look], theme: Theme
) -> Figure:
    """Draw a panel of bars a speed."""
    figure = Figure((10, 1.2 + 0.34 * len(rows)))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, key in zip(panels, SPEEDS, strict=True):
        rates = [median(row, key) for row in rows]
        low, high = (pick(filter(None, rates), default=1) for pick in (min, max))
        start = 10 ** np.floor(np.log10(low / 1.2))
        axes.set_xscale("log")
        axes.set_xlim(start, high * (high / start) ** 0.22)  # room for the figures
        plain_ticks(axes.xaxis, LogLocator(subs=(1,) if high > 100 * start else (1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        for y, (row, value, look) in enumerate(zip(rows, rates, looks, strict=True)):
            if value:
                axes.barh(y, value - start, left=start, height=0.6, color=theme.color(look))
                turns = (row[key] or {}).get("values") or [value]
                span = {"color": theme.ink, "linewidth": 1.2, "solid_capstyle": "butt"}
                axes.plot([min(turns), max(turns)], [y, y], **span)
                box = {"facecolor": theme.paper, "edgecolor": "none", "pad": 0.8}
                write_right_of(axes, (max(value, *turns), y), show_rate(value), bbox=box)
        axes.set_title(key)
        axes.set_xlabel("tokens a second (log scale)")
        axes.grid(axis="y", visible=False)
    panels[0].set_yticks(range(len(rows)), names)
    panels[0].invert_yaxis()
    return figure


def show_rate(value: float | None) -> str:
    """Return a rate in tokens a second."""
    return decimal(value, 0 if value and value >= 100 else 1)
