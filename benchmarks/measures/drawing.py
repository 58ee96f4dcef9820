"""Figure of rescoring lattices: the real-time factor by density and by histories."""

from collections.abc import Mapping
from functools import partial

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from lmtools.report.drawing import LIGHT, Picture, Theme, beside, line, plain_ticks
from lmtools.report.style import Names

AXES = {
    "density": ("density", "arcs a second of speech"),
    "tokens": ("tokens", "histories a state"),
}


def draw_bench(figures: Mapping) -> bytes:
    """Draw the real-time factor that `bench.py lattice` measured, by density and by histories
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
