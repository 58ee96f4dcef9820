"""The figure of throughput and responsiveness (Table 4 of the GCNN paper)."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from lmtools.report.lm.experiment import LmExperiment
from lmtools.report.lm.models import OTHER
from lmtools.report.lm.tables import median, titles_of
from lmtools.report.page.columns import decimal
from lmtools.report.page.drawing import Picture, Theme, write_right_of
from lmtools.report.style import Look

SPEEDS = ("throughput", "responsiveness")


def speed_pictures(experiment: LmExperiment) -> Iterator[Picture]:
    """Throughput and responsiveness of each model, as bars (GCNN Table 4)."""
    rows = [
        row
        for row in (experiment.bench or {"rows": ()})["rows"]
        if any(median(row, key) for key in SPEEDS)
    ]
    if rows:
        bench, titles = experiment.bench, titles_of(experiment)
        names = [titles.get(row["name"], experiment.names.label(row["name"])) for row in rows]
        said = [
            ", ".join(
                f"{name} {rate(median(row, key))}" for name, row in zip(names, rows, strict=True)
            )
            for key in SPEEDS
        ]
        yield Picture(
            "speed",
            f"Tokens a second in scoring, {bench.get('threads', '?')} thread(s),"
            f" {bench.get('device', 'device unknown')}, {bench.get('machine', 'machine unknown')}:"
            " throughput of a batch of sequences, responsiveness of one sequence at a time"
            " (compare Table 4 of the GCNN paper). Equal lengths are equal factors; lines span the"
            " turns.",
            f"Throughput in tokens a second: {said[0]}. Responsiveness: {said[1]}.",
            lambda theme: draw_speed(theme, names, rows, [family(experiment, row) for row in rows]),
            wide=True,
        )


def family(experiment: LmExperiment, row: Mapping) -> Look:
    """Return the look of a row's model: of its family, known by its own directory or by what the
    bench calls it.
    """
    if row["name"] in experiment.models:
        return experiment.models[row["name"]].look
    families = experiment.names.style.families
    return families[row.get("model") if row.get("model") in families else OTHER].look


def draw_speed(
    theme: Theme, names: Sequence[str], rows: Sequence[Mapping], looks: Sequence[Look]
) -> Figure:
    figure = Figure((10, 1.2 + 0.34 * len(rows)))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, key in zip(panels, SPEEDS, strict=True):
        rates = [median(row, key) for row in rows]
        low, high = (pick(filter(None, rates), default=1) for pick in (min, max))
        start = 10 ** np.floor(np.log10(low / 1.2))
        axes.set_xscale("log")
        axes.set_xlim(start, high * (high / start) ** 0.22)  # room for the figures
        axes.xaxis.set_major_locator(LogLocator(subs=(1,) if high > 100 * start else (1, 2, 5)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        for y, (row, value, look) in enumerate(zip(rows, rates, looks, strict=True)):
            if value:
                axes.barh(y, value - start, left=start, height=0.6, color=theme.color(look))
                turns = (row[key] or {}).get("values") or [value]
                span = {"color": theme.ink, "linewidth": 1.2, "solid_capstyle": "butt"}
                axes.plot([min(turns), max(turns)], [y, y], **span)
                box = {"facecolor": theme.paper, "edgecolor": "none", "pad": 0.8}
                write_right_of(axes, (max(value, *turns), y), rate(value), bbox=box)
        axes.set_title(key)
        axes.set_xlabel("tokens a second (log scale)")
        axes.grid(axis="y", visible=False)
    panels[0].set_yticks(range(len(rows)), names)
    panels[0].invert_yaxis()
    return figure


def rate(value: float | None) -> str:
    """Return a rate in tokens a second."""
    return decimal(value, 0 if value and value >= 100 else 1)
