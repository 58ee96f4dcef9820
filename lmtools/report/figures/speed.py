"""Figures of run time: of one sentence by its length, as in Figure 4 of the T-TA paper."""

from collections.abc import Iterator
from functools import partial

from matplotlib.figure import Figure

from lmtools.report.experiment import Experiment
from lmtools.report.page.drawing import Picture, Theme, beside, line, plain_ticks
from lmtools.report.rows import MILLISECONDS
from lmtools.report.tables.machine import TASKS


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
