"""Figures of semantic textual similarity: cosines against similarity, correlations with intervals,
by layer; against what the same language models gain on lists.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lmtools.evaluate import METRICS
from lmtools.report.drawing import Picture, Theme, beside, chart, marked, write_right_of
from lmtools.report.experiment import Experiment
from lmtools.report.parts.pairs import Judged, JudgedPairs
from lmtools.report.parts.views import MASKED
from lmtools.report.style import Look
from lmtools.report.table import decimal
from lmtools.report.tables.sts import Gain, measure_gains, name_judges

PANELS, WIDE = 9, 3  # small multiples of one figure: how many, and how many side by side
PARTS = {"context": 1.0, "embed": 0.45}  # how opaque the bar of each is
POINTS = 3  # of a figure that shows more than the table
BARS = (
    "a panel a set: full bars are contexts (last layer), pale ones embedding layers; lines are 95%"
    " intervals."
)
BOXES = "boxes are quartiles, whiskers the 5th and 95th percentile, marks means"
SCATTER = "a point is a pair, the line the regression"


def bar_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield Pearson of context and embed of each system with 95% intervals, one panel a set."""
    pairs = experiment.pairs
    if pairs.ways:
        results = "; ".join(f"{name}: {describe_results(pairs, name)}" for name in pairs.sets)
        yield Picture(
            "bars",
            f"Pearson's correlation (x100) of cosine and {name_judges(experiment)}, {BARS}",
            f"Pearson x100 of contexts, of static vectors of embeddings. {results}.",
            partial(draw_bars, pairs),
            wide=True,
        )


def describe_results(pairs: JudgedPairs, name: str) -> str:
    """Return the correlation of each system on a set, in words."""
    return ", ".join(
        f"{pairs.labels[system]} {decimal(judged.hundredfold('best'), 1)}"
        for system, judged in pairs.on(name).items()
    )


def draw_bars(pairs: JudgedPairs, theme: Theme) -> Figure:
    """Draw a panel a set."""
    systems, sets = list(pairs.ways), pairs.sets
    figure = Figure((2.2 + 4.2 * max(len(sets), 2), 1.1 + 0.48 * len(systems)))
    panels = figure.subplots(1, len(sets), sharex=True, sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, sets, strict=True):
        judged = pairs.on(name)
        for y, system in enumerate(systems):
            if system in judged:
                draw_bars_of(axes, theme, judged[system], pairs.looks[system], y=y)
        axes.set_title(name)
        axes.set_xlabel("Pearson x100")
        axes.grid(axis="y", visible=False)
        axes.axvline(0, color=theme.ink, linewidth=0.8)
        axes.margins(x=0.12)
    axes.set_yticks(range(len(systems)), [pairs.labels[system] for system in systems])
    axes.set_ylim(len(systems) - 0.4, -0.6)
    return figure


def draw_bars_of(axes, theme: Theme, judged: Judged, look: Look, y: int) -> None:
    """Draw the bars of one system, one under the other; a system with a single bar has it in the
    middle.
    """
    layers = {part: getattr(judged, part) for part in PARTS}
    parts = {
        part: [100 * number for number in layer.correlations["pearson"]]
        for part, layer in layers.items()
        if layer and math.isfinite(layer.correlations["pearson"][0])
    }
    height = 0.38
    for i, (part, (value, low, high)) in enumerate(parts.items()):
        at = y + height * (i - (len(parts) - 1) / 2)
        axes.barh(at, value, height=0.92 * height, color=theme.color(look), alpha=PARTS[part])
        # a rim of paper, so that it is seen on every bar
        for color, width in ((theme.paper, 3), (theme.ink, 1.2)):
            axes.plot([low, high], [at, at], color=color, linewidth=width, solid_capstyle="butt")
        end = max(value, high, 0) if math.isfinite(high) else max(value, 0)
        place = {"textcoords": "offset points", "va": "center", "fontsize": 8.5}
        axes.annotate(f"{value:.1f}", (end, at), (4, 0), **place)


def scatter_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield cosine against similarity on the last set, one panel a system."""
    pairs, name = experiment.pairs, experiment.pairs.test
    shown = choose_panels(pairs, pairs.on(name))
    if not shown:
        return
    missing = [pairs.labels[system] for system in pairs.on(name) if system not in shown]
    left = f" Without a panel, but in the tables: {', '.join(missing)}." if missing else ""
    yield Picture(
        f"scatter-{name}",
        f"Cosine of two sentences' vectors against {name_judges(experiment)} on {name}"
        " (context of each system, of static vectors the embedding);"
        f" {BOXES if pairs.graded(name) else SCATTER}; r is Pearson's"
        f" correlation. Each panel has its own scale of cosines, on which r does not depend.{left}",
        f"Cosine against similarity; Pearson x100 on {name}: {describe_results(pairs, name)}.",
        partial(draw_scatter, pairs, shown),
        wide=True,
    )


def choose_panels(pairs: JudgedPairs, judged: Mapping[str, Judged]) -> list[str]:
    """Return the systems that have a panel: all, or where they are too many first those that are
    plain, masked or static.
    """
    systems = list(judged)
    if len(systems) > PANELS:
        systems = [system for system in systems if pairs.ways[system].views in ((), (MASKED,))]
    # static vectors give way
    kept = sorted(systems, key=lambda system: judged[system].context is None)[:PANELS]
    return [system for system in systems if system in kept]


def draw_scatter(pairs: JudgedPairs, systems: Sequence[str], theme: Theme) -> Figure:
    """Draw a panel a system: points, or of grades boxes."""
    columns = min(WIDE, len(systems))
    rows = math.ceil(len(systems) / columns)
    figure = Figure((1 + 3.3 * columns, 0.3 + 2.7 * rows))
    panels = figure.subplots(rows, columns, sharex=True, squeeze=False)
    judged, draw = pairs.on(pairs.test), boxes if pairs.graded(pairs.test) else points
    for axes, system in zip(panels.flat, systems, strict=False):
        layer = judged[system].best
        draw(axes, theme, pairs.looks[system], judged[system].gold, cosines=layer.cosines)
        r = decimal(layer.correlations["pearson"][0])
        axes.set_title(f"{pairs.labels[system]}  r = {r}")
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
    columns = [cosines[gold == grade] for grade in grades]
    style = {"showfliers": False, "manage_ticks": False, "patch_artist": True, "whis": (5, 95)}
    parts = axes.boxplot(columns, positions=grades, widths=width, **style)
    for line in (line for name in ("boxes", "whiskers", "caps", "medians") for line in parts[name]):
        line.set_color(theme.ink if line in parts["medians"] else color)
    for box in parts["boxes"]:
        box.set(facecolor=color, alpha=0.45)
    means = [column.mean() for column in columns]
    axes.plot(grades, means, color=color, linewidth=1, marker="o", markersize=3)
    axes.set_xticks(grades, [f"{grade:g}" for grade in grades])
    axes.set_xlim(grades[0] - width, grades[-1] + width)


def layer_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield Pearson by layer on the last set, one line a system."""
    pairs = experiment.pairs
    if layered := pairs.deep:
        ends = "; ".join(
            f"{pairs.labels[system]}"
            f" {', '.join(decimal(value, 1) for value in judged.pearsons.values())}"
            for system, judged in layered.items()
        )
        yield Picture(
            "layers",
            f"Pearson's correlation (x100) of cosine and {name_judges(experiment)} on {pairs.test}"
            " by layer: 0 is the embedding layer, the last the context; bands are 95% intervals.",
            f"Pearson x100 by layer on {pairs.test}: {ends}.",
            partial(draw_layers, pairs),
        )


def draw_layers(pairs: JudgedPairs, theme: Theme) -> Figure:
    """Draw a line and a band a system."""
    y = f"Pearson x100 on {pairs.test}"
    figure, axes = chart((7.2, 4), "layer (0: embedding layer)", y)
    for system, judged in pairs.deep.items():
        look = pairs.looks[system]
        numbers = [layer.number for layer in judged.layers]
        layers = [layer.correlations["pearson"] for layer in judged.layers]
        value, low, high = 100 * np.array(layers).T
        band = {"color": theme.color(look), "alpha": 0.1, "linewidth": 0}
        axes.fill_between(numbers, low, high, **band)
        style = {"linestyle": look.line, "label": pairs.labels[system]}
        axes.plot(numbers, value, **style, **marked(theme, look, 6, 9))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    beside(axes)
    return figure


def gain_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield reranking gain against similarity, one point a language model."""
    short = experiment.names.short
    for measured in experiment.lists.judged if experiment.lists else ():
        gains = [g for g in measure_gains(experiment, measured) if g.context is not None]
        if len(gains) >= POINTS:
            title, name = METRICS[measured.refs.metric].title, measured.sample.name
            pairs = [f"{short(g.lm)} {g.context:.1f} and {g.gain:.2f}" for g in gains]
            yield Picture(
                f"gains-{name}",
                f"Points of {title} that a language model gains on the lists of {name} over the"
                " first pass against Pearson's correlation (x100) of its context and"
                f" {name_judges(experiment)} on {experiment.pairs.test}.",
                f"Pearson x100 and gain in {title}: {'; '.join(pairs)}.",
                partial(draw_gains, experiment, gains, title),
            )


def draw_gains(experiment: Experiment, gains: Sequence[Gain], title: str, theme: Theme) -> Figure:
    """Draw a mark and a name a language model."""
    x = f"Pearson x100 on {experiment.pairs.test}, context"
    figure, axes = chart((6.4, 3.6), x, f"gain, points of {title}")
    looks = experiment.names.looks([gain.lm for gain in gains])
    for gain in gains:
        point = gain.context, gain.gain
        axes.plot(*np.transpose([point]), linestyle="none", **marked(theme, looks[gain.lm], 8, 12))
        write_right_of(axes, point, experiment.names.short(gain.lm))
    axes.margins(x=0.2, y=0.2)
    return figure
