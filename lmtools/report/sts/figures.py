"""Figures of semantic textual similarity: cosines against similarity, correlations with intervals,
by layer; run time.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lmtools.report.page.columns import decimal
from lmtools.report.page.drawing import Picture, Theme, beside, marked
from lmtools.report.papers.run_times import speed_pictures
from lmtools.report.sts.experiment import Judged, StsExperiment
from lmtools.report.sts.gains import gain_pictures
from lmtools.report.sts.tables import deep, hundredfold, pearsons
from lmtools.report.sts.views import MASKED
from lmtools.report.style import Look

PANELS, WIDE = 9, 3  # small multiples of one figure: how many, and how many side by side
PARTS = {"context": 1.0, "embed": 0.45}  # how opaque the bar of each is


def bar_pictures(experiment: StsExperiment) -> Iterator[Picture]:
    """Pearson of context and embed of each system with 95% intervals, one panel a set."""
    if not experiment.systems:
        return
    said = "; ".join(f"{name}: {said_of(experiment, name)}" for name in experiment.sets)
    yield Picture(
        "bars",
        f"Pearson's correlation (x100) of cosine and {experiment.judges}, a panel a set: full bars"
        " are contexts (last layer), pale ones embedding layers; lines are 95% intervals.",
        f"Pearson x100 of contexts, of static vectors of embeddings. {said}.",
        lambda theme: draw_bars(theme, experiment),
        wide=True,
    )


def said_of(experiment: StsExperiment, name: str) -> str:
    """Return the correlation of each system on a set, in words."""
    judged = experiment.on(name)
    return ", ".join(
        f"{experiment.labels[system]} {decimal(hundredfold(one, 'best', 'pearson'), 1)}"
        for system, one in judged.items()
    )


def draw_bars(theme: Theme, experiment: StsExperiment) -> Figure:
    systems, sets = experiment.systems, experiment.sets
    figure = Figure((2.2 + 4.2 * max(len(sets), 2), 1.1 + 0.48 * len(systems)))
    looks = experiment.looks
    for axes, name in zip(
        figure.subplots(1, len(sets), sharex=True, sharey=True, squeeze=False)[0], sets, strict=True
    ):
        judged = experiment.on(name)
        for y, system in enumerate(systems):
            if system in judged:
                bars_of(axes, theme, judged[system], looks[system], y)
        axes.set_title(name)
        axes.set_xlabel("Pearson x100")
        axes.grid(axis="y", visible=False)
        axes.axvline(0, color=theme.ink, linewidth=0.8)
        axes.margins(x=0.12)
    axes.set_yticks(range(len(systems)), [experiment.labels[system] for system in systems])
    axes.set_ylim(len(systems) - 0.4, -0.6)
    return figure


def bars_of(axes, theme: Theme, one: Judged, look: Look, y: int) -> None:
    """Draw the bars of one system, one under the other; a system with one of them has it in the
    middle.
    """
    parts = {
        part: layer
        for part in PARTS
        if (layer := getattr(one, part)) and math.isfinite(layer.correlations["pearson"][0])
    }
    height = 0.38
    for i, (part, layer) in enumerate(parts.items()):
        at = y + height * (i - (len(parts) - 1) / 2)
        value, low, high = (100 * number for number in layer.correlations["pearson"])
        axes.barh(at, value, height=0.92 * height, color=theme.color(look), alpha=PARTS[part])
        # a rim of paper, so that it is seen on every bar
        for color, width in ((theme.paper, 3), (theme.ink, 1.2)):
            axes.plot([low, high], [at, at], color=color, linewidth=width, solid_capstyle="butt")
        end = max(value, high, 0) if math.isfinite(high) else max(value, 0)
        axes.annotate(
            f"{value:.1f}", (end, at), (4, 0), textcoords="offset points", va="center", fontsize=8.5
        )


def scatter_pictures(experiment: StsExperiment) -> Iterator[Picture]:
    """Cosine against similarity on the last set, one panel a system."""
    shown = chosen(experiment, experiment.on(experiment.test))
    if not shown:
        return
    few = experiment.graded(experiment.test)
    how = (
        "boxes are quartiles, whiskers the 5th and 95th percentile, marks means"
        if few
        else "a point is a pair, the line the regression"
    )
    missing = [
        experiment.labels[system]
        for system in experiment.on(experiment.test)
        if system not in shown
    ]
    left = f" Without a panel, but in the tables: {', '.join(missing)}." if missing else ""
    yield Picture(
        f"scatter-{experiment.test}",
        f"Cosine of two sentences' vectors against {experiment.judges} on {experiment.test}"
        f" (context of each system, of static vectors the embedding); {how}; r is Pearson's"
        f" correlation. Each panel has its own scale of cosines, on which r does not depend.{left}",
        f"Cosine against similarity; Pearson x100 on {experiment.test}:"
        f" {said_of(experiment, experiment.test)}.",
        lambda theme: draw_scatter(theme, experiment, shown, few),
        wide=True,
    )


def chosen(experiment: StsExperiment, judged: Mapping[str, Judged]) -> list[str]:
    """Return the systems that have a panel: all, or where they are too many first those that are
    plain, masked or static.
    """
    systems = list(judged)
    if len(systems) > PANELS:
        ways = experiment.ways
        systems = [system for system in systems if ways[system].views in ((), (MASKED,))]
    # static vectors give way
    kept = sorted(systems, key=lambda system: judged[system].context is None)[:PANELS]
    return [system for system in systems if system in kept]


def draw_scatter(
    theme: Theme, experiment: StsExperiment, systems: Sequence[str], few: bool
) -> Figure:
    columns = min(WIDE, len(systems))
    rows = math.ceil(len(systems) / columns)
    figure = Figure((1 + 3.3 * columns, 0.3 + 2.7 * rows))
    panels = figure.subplots(rows, columns, sharex=True, squeeze=False)
    looks, judged = (experiment.looks, experiment.on(experiment.test))
    for axes, system in zip(panels.flat, systems, strict=False):
        one = judged[system]
        (boxes if few else points)(axes, theme, looks[system], one.gold, one.best.cosines)
        axes.set_title(
            f"{experiment.labels[system]}  r = {decimal(one.best.correlations['pearson'][0])}"
        )
        axes.yaxis.set_major_locator(MaxNLocator(5))
    for axes in panels.flat[len(systems) :]:
        axes.remove()
    for axes in panels.flat[: len(systems)]:
        axes.set_xlabel("similarity")
        axes.tick_params(labelbottom=True)
    for axes in panels[:, 0]:
        axes.set_ylabel("cosine")
    return figure


def points(axes, theme: Theme, look: Look, gold: np.ndarray, cosines: np.ndarray) -> None:
    """Draw a point a pair, the fewer the stronger, and the regression line."""
    strength = float(np.clip(8 / math.sqrt(len(gold)), 0.15, 0.8))
    marks = {"linestyle": "none", "marker": "o", "markersize": 2.6, "markeredgewidth": 0}
    axes.plot(gold, cosines, color=theme.color(look), alpha=strength, **marks)
    if np.ptp(gold):
        slope, start = np.polyfit(gold, cosines, 1)
        ends = np.array([gold.min(), gold.max()])
        axes.plot(ends, slope * ends + start, color=theme.ink, linewidth=1.2)


def boxes(axes, theme: Theme, look: Look, gold: np.ndarray, cosines: np.ndarray) -> None:
    """Draw the distribution of cosines at each grade, and the line of their means."""
    grades = np.unique(gold)
    color, width = theme.color(look), 0.5 * float(np.diff(grades).min()) if len(grades) > 1 else 0.5
    parts = axes.boxplot(
        [cosines[gold == grade] for grade in grades], positions=grades, widths=width, whis=(5, 95),
        showfliers=False,
        manage_ticks=False, patch_artist=True,
    )  # fmt: skip
    for line in (line for name in ("boxes", "whiskers", "caps", "medians") for line in parts[name]):
        line.set_color(theme.ink if line in parts["medians"] else color)
    for box in parts["boxes"]:
        box.set(facecolor=color, alpha=0.45)
    means = [cosines[gold == grade].mean() for grade in grades]
    axes.plot(grades, means, color=color, linewidth=1, marker="o", markersize=3)
    axes.set_xticks(grades, [f"{grade:g}" for grade in grades])
    axes.set_xlim(grades[0] - width, grades[-1] + width)


def layer_pictures(experiment: StsExperiment) -> Iterator[Picture]:
    """Pearson by layer on the last set, one line a system."""
    if layered := deep(experiment):
        name = experiment.test
        ends = "; ".join(
            f"{experiment.labels[system]}"
            f" {', '.join(decimal(value, 1) for value in pearsons(one).values())}"
            for system, one in layered.items()
        )
        yield Picture(
            "layers",
            f"Pearson's correlation (x100) of cosine and {experiment.judges} on {name} by layer: 0"
            " is the embedding layer, the last the context; bands are 95% intervals.",
            f"Pearson x100 by layer on {name}: {ends}.",
            lambda theme: draw_layers(theme, experiment, layered),
        )


def draw_layers(theme: Theme, experiment: StsExperiment, layered: Mapping[str, Judged]) -> Figure:
    figure = Figure((7.2, 4))
    axes = figure.subplots()
    looks = experiment.looks
    for system, one in layered.items():
        numbers = [layer.number for layer in one.layers]
        value, low, high = 100 * np.array([layer.correlations["pearson"] for layer in one.layers]).T
        axes.fill_between(
            numbers, low, high, color=theme.color(looks[system]), alpha=0.1, linewidth=0
        )
        axes.plot(
            numbers,
            value,
            linestyle=looks[system].line,
            label=experiment.labels[system],
            **marked(theme, looks[system], 6, 9),
        )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("layer (0: embedding layer)")
    axes.set_ylabel(f"Pearson x100 on {experiment.test}")
    beside(axes)
    return figure


STS_PICTURES: dict[str, Callable[[StsExperiment], Iterator[Picture]]] = {
    "bars": bar_pictures,
    "scatter": scatter_pictures,
    "layers": layer_pictures,
    "gains": gain_pictures,
    "speed": speed_pictures,
}
