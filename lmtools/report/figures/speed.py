"""Figures of run time: of one sentence by its length, as in Figure 4 of the T-TA paper; of
rescoring lattices, by density and by histories.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from lmtools.report.experiment import Experiment
from lmtools.report.names import Names
from lmtools.report.page.drawing import LIGHT, Picture, Theme, beside, line, plain_ticks
from lmtools.report.rows import MILLISECONDS
from lmtools.report.tables.machine import TASKS

AXES = {
    "density": ("density", "arcs a second of speech"),
    "tokens": ("tokens", "histories a state"),
}


def speed_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield run time by sentence length, as in Figure 4 of the T-TA paper."""
    if speed := experiment.speed:
        yield Picture(
            "speed",
            f"Run time of one sentence by its length, {speed.get('threads', '?')} thread(s),"
            f" {speed.get('machine', 'machine unknown')}: lines are medians, bands the middle half"
            " of the measurements (compare Figure 4 of the T-TA paper).",
            "Run time by sentence length; the table of the same name has the medians.",
            partial(draw_speed, experiment),
            wide=True,
        )


def draw_speed(experiment: Experiment, theme: Theme) -> Figure:
    """Draw a panel a task, a line and a band a language model."""
    names = experiment.names.lms
    rows = [
        row for row in experiment.rows.every if (row.kind, row.quantity) == ("speed", MILLISECONDS)
    ]
    tasks, lms = sorted({row.set for row in rows}), names.ordered({row.name for row in rows})
    styles = names.looks(lms)
    figure = Figure((10, 4))
    panels = figure.subplots(1, len(tasks), sharey=True, squeeze=False)[0]
    for axes, task in zip(panels, tasks, strict=True):
        for lm in lms:
            timed = [row for row in rows if (row.set, row.name) == (task, lm)]
            timed.sort(key=lambda row: row.at)
            words = [row.at for row in timed]
            band = {"color": theme.color(styles[lm]), "alpha": 0.2, "linewidth": 0}
            ends = [row.low for row in timed], [row.high for row in timed]
            axes.fill_between(words, *ends, **band)
            medians = [row.value for row in timed]
            line(axes, theme, styles[lm], names.label(lm), x=words, y=medians)
        axes.set_title(TASKS.get(task, task))
        axes.set_yscale("log")
        plain_ticks(axes.yaxis)
        axes.set_xlabel("sentence length (words)")
    panels[0].set_ylabel("milliseconds a sentence (log scale)")
    beside(panels[-1])
    return figure


def draw_bench(figures: Mapping) -> bytes:
    """Draw the real-time factor that `lmtools bench lattice` measured, by density and by histories
    kept, one line an LM; return PNG.
    """
    return Picture("lattice", "", "", partial(draw_real_time, figures)).png(LIGHT)


def draw_real_time(figures: Mapping, theme: Theme) -> Figure:
    """Draw one panel a kind of measurement; those of the whole lattices belong to each."""
    rows, printed = figures["rows"], Names()
    kinds = [kind for kind in AXES if any(row["kind"] == kind for row in rows)] or ["density"]
    figure = Figure((4.2 * len(kinds) + 1.4, 3.6))
    names = printed.ordered({row["lm"] for row in rows})
    styles = printed.looks(names)
    panels = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for axes, kind in zip(panels, kinds, strict=True):
        key, title = AXES[kind]
        for name in names:
            timed = (row for row in rows if row["lm"] == name and row["kind"] in (kind, "whole"))
            points = {r[key]: r["real_time_factor"] for r in timed if r[key] is not None}
            xy = zip(*sorted(points.items()), strict=True)
            line(axes, theme, styles[name], printed.label(name), *xy)
        axes.set_xscale("log")
        axes.set_yscale("log")
        # one major tick a decade would leave most of these axes without numbers
        for axis in (axes.xaxis, axes.yaxis):
            plain_ticks(axis)
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlabel(title)
    panels[0].set_ylabel("x real time")
    beside(panels[-1])
    return figure
