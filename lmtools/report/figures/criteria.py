"""Figures of training criteria: perplexity over the time of training, and against the time of a
step; every line says whose it is.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure

from lmtools.report.experiment import Experiment
from lmtools.report.page.drawing import Picture, Theme, chart, plain_ticks
from lmtools.report.page.ends import EDGE, EndPanel, end_panel, scale_of
from lmtools.report.parts.models import curve
from lmtools.report.tables.trunks import CriteriaTrunk, Entry, kind_of, list_trunks

FULL = "full"  # the panel of criteria over the whole vocabulary
PANEL = 6  # lines that one panel can hold
TIME = (
    "perplexity of a token of the validation text, over the full vocabulary, against the time spent"
    " in training steps; the number is where a training ended. Equal distances sideways are equal"
    f" factors of time. {EDGE}"
)
PRICE = (
    "against the time of a training step; the number is the perplexity, the dashed lines are those"
    f" of the full softmax (CE): left of it is faster, below it better. {EDGE}"
)


def criteria_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield for each trunk perplexity over the time of training, and against the time of a step."""
    for trunk in list_trunks(experiment):
        yield from time_pictures(experiment, trunk)
        yield from price_pictures(experiment, trunk)


def time_pictures(experiment: Experiment, trunk: CriteriaTrunk) -> Iterator[Picture]:
    """Yield validation perplexity over training time, one line a criterion."""
    learning = experiment.learning
    curves = {entry: curve(learning.get(entry.name, ())) for entry in trunk.entries}
    curves = {entry: points for entry, points in curves.items() if len(points)}
    if len(curves) > 1:
        titles = trunk.titles
        ends = [f"{titles[entry]} {points[-1, 1]:.4g}" for entry, points in curves.items()]
        yield Picture(
            f"criteria-{trunk.key}-time",
            f"{trunk.title}: {TIME}",
            f"Validation perplexity at the end of training: {', '.join(ends)}.",
            partial(draw_curves, trunk, curves),
            wide=len(curves) > PANEL,
            part="criteria",
        )


def price_pictures(experiment: Experiment, trunk: CriteriaTrunk) -> Iterator[Picture]:
    """Yield perplexity against the time of a training step, one point a criterion."""
    texts = [*(measured.sample.name for measured in experiment.lists.judged), "valid"]
    ppl = {
        text: [experiment.rows.value("lm", e.name, "word_ppl", text) for e in trunk.entries]
        for text in texts
    }
    text = next((text for text in texts if any(ppl[text])), "valid")
    points = {
        entry: (entry.milliseconds, value)
        for entry, value in zip(trunk.entries, ppl[text], strict=True)
        if entry.milliseconds and value and np.isfinite(entry.milliseconds)
    }
    if len(points) > 1:
        titles, subject = trunk.titles, f"word {kind_of(experiment, trunk, text)} on {text}"
        prices = [f"{titles[e]} {time:.4g} ms and {y:.4g}" for e, (time, y) in points.items()]
        yield Picture(
            f"criteria-{trunk.key}-price",
            f"{trunk.title}: {subject} {PRICE}",
            f"Time of a training step and {subject}: {', '.join(prices)}.",
            partial(draw_price, trunk, points, subject),
            wide=len(points) > PANEL,
            part="criteria",
        )


def draw_curves(trunk: CriteriaTrunk, curves: Mapping, theme: Theme) -> Figure:
    """Draw one panel, or of many criteria one a family, each with the full softmax beside."""
    families: dict[str, list[Entry]] = {}
    for entry in curves:
        families.setdefault(entry.shown.panel if len(curves) > PANEL else "", []).append(entry)
    figure = Figure((6.6, 4.4) if len(families) == 1 else (11.5, 4.2))
    panels = figure.subplots(1, len(families), sharex=True, sharey=True, squeeze=False)[0]
    first = end_panel(panels[0], theme, [points[-1, 1] for points in curves.values()], 2.5)
    ends = [points[-1, 0] for points in curves.values()]
    unit, name = scale_of(max(ends))
    start = max(min(points[0, 0] for points in curves.values()) / 1.1, min(ends) / 12)
    panels[0].set_xscale("log")
    panels[0].set_xlim(start / unit, 1.1 * max(ends) / unit)
    plain_ticks(panels[0].xaxis)
    for axes, (family, entries) in zip(panels, families.items(), strict=True):
        reference = [trunk.full] if trunk.full in curves and trunk.full not in entries else []
        panel = EndPanel(axes, theme, first.top)
        for entry in (*reference, *entries):
            draw_entry(panel, trunk, entry, *(curves[entry] / (unit, 1)).T)
        panel.write()
        axes.set_title(family)
        axes.set_xlabel(f"training time ({name}, log scale)")
    panels[0].set_ylabel("validation perplexity (a token, log scale)")
    return figure


def draw_price(trunk: CriteriaTrunk, points: Mapping, subject: str, theme: Theme) -> Figure:
    """Draw a labelled point a criterion and dashed lines at that of the full softmax."""
    size = (10, 4.6) if len(points) > PANEL else (6.6, 4.4)
    figure, axes = chart(size, "milliseconds a training step", f"{subject} (log scale)")
    panel = end_panel(axes, theme, [ppl for _, ppl in points.values()], 1)
    times = sorted(time for time, _ in points.values())
    axes.set_xlim(0, 1.08 * times[-1])
    if trunk.full in points:
        color, dashed = theme.color(trunk.full.shown.look), {"linestyle": "--", "linewidth": 0.9}
        for draw, at in zip((axes.axvline, axes.axhline), points[trunk.full], strict=True):
            draw(at, color=color, alpha=0.6, **dashed)
    for entry, (time, ppl) in points.items():
        draw_entry(panel, trunk, entry, [time], y=[ppl])
    gap, slow = max((after - before, after) for before, after in pairwise(times))
    # room for the labels of the faster ones between them and the slower ones
    wide = gap > 0.45 * times[-1]
    fast = [label for label in panel.labels if wide and label[1] < slow]
    panel.write((slow - 0.86 * gap) / (1.08 * times[-1]), fast)
    panel.write(labels=[label for label in panel.labels if label not in fast])
    return figure


def draw_entry(panel: EndPanel, trunk: CriteriaTrunk, entry: Entry, x, y) -> None:
    """Draw a criterion's line in its own look with a mark at its end; that of the second and
    further models of a criterion is hollow.
    """
    twins = [twin for twin in trunk.entries if twin.criterion == entry.criterion]
    hollow = {"markerfacecolor": panel.theme.paper} if twins.index(entry) else {}
    width = 2.2 if entry.shown.panel == FULL else 1.5
    style = {"linewidth": width, "markevery": [-1], "label": entry.name}
    panel.line(entry.shown.look, trunk.titles[entry], x, y, **style | hollow)
