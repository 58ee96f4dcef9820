"""Values of papers' figures on figures of ours: dashed lines, marks, and a note below."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from lmtools.report.experiment import Experiment
from lmtools.report.page.drawing import Picture, Theme
from lmtools.report.papers.cited import FigureQuote

DASHED = {"linestyle": (0, (6, 3)), "linewidth": 1.1}


def add_readings(experiment: Experiment, pictures: Iterable[Picture]) -> Iterator[Picture]:
    """Yield the figures, each with what is read off the papers' figures of the same."""
    for picture in pictures:
        found = [
            one
            for one in experiment.names.style.readings
            if picture.name == one.beside or picture.name.startswith(f"{one.beside}-")
        ]
        yield quoting(experiment, picture, found) if found else picture


def quoting(experiment: Experiment, picture: Picture, readings: list[FigureQuote]) -> Picture:
    """Add to a figure what is read off those of papers."""
    said = " ".join(note(experiment, one) for one in readings)

    def draw(theme: Theme) -> Figure:
        figure = picture.draw(theme)
        for one in readings:
            draw_reading(experiment, theme, figure, one)
        return figure

    return replace(picture, caption=f"{picture.caption} {said}", draw=draw)


def note(experiment: Experiment, one: FigureQuote) -> str:
    """Return the note on a paper's figure, with what is uncertain."""
    paper = experiment.names.style.citations[one.paper]
    unsure = f" Uncertain: {one.uncertain}" if one.uncertain else ""
    return f"[{paper.label}, Figure {one.figure}: {one.text}{unsure}]"


def draw_reading(experiment: Experiment, theme: Theme, figure: Figure, one: FigureQuote) -> None:
    """Draw lines and marks of one reading on each panel; levels only where they compare, as far as
    the panel reaches.
    """
    paper = f"{experiment.names.style.citations[one.paper].label} Figure {one.figure}"
    style = {"color": theme.ink, "zorder": 1.5}
    for axes in figure.axes:
        for x in one.x:
            axes.axvline(x, **style, **DASHED)
            write_upright(axes, theme, x, f"{paper}: {x:g}")
        low, high = axes.get_ylim()
        levels = one.y if experiment.options & set(one.same) else ()
        for y in (y for y in levels if low < y < high):
            axes.axhline(y, **style, **DASHED)
            place = {"transform": axes.get_yaxis_transform(), "va": "bottom", "fontsize": 8}
            axes.text(0.01, y, f"{paper}: {y:g}", color=theme.ink, **place)
        if one.times:
            draw_times(experiment, theme, axes, one.times, paper)


def write_upright(axes, theme: Theme, x: float, text: str) -> None:
    """Writes `text` beside an upright line at `x`, at the top."""
    place = {"xycoords": axes.get_xaxis_transform(), "textcoords": "offset points"}
    turned = {"rotation": 90, "ha": "right", "va": "top", "fontsize": 8}
    axes.annotate(text, (x, 0.98), (-3, 0), color=theme.ink, **place, **turned)


def draw_times(experiment: Experiment, theme: Theme, axes, times, paper: str) -> None:
    """Draw a mark at so many times the run time of a language model, at a length of sentences, in
    the panel of a task: where the other would stand by the paper.
    """
    label = experiment.names.lms.label(times["of"])
    line = next((line for line in axes.get_lines() if line.get_label() == label), None)
    factor = times["by"].get(axes.get_title("left") or axes.get_title())
    if line is None or factor is None or len(line.get_xdata()) < 2:
        return
    words, (x, y) = times["words"], np.asarray(line.get_xydata(), dtype=float).T
    if not x.min() <= words <= x.max():
        return
    own = float(np.exp(np.interp(words, x, np.log(y))))
    axes.plot([words, words], [own, factor * own], color=theme.ink, **DASHED)
    end = {"marker": "_", "markersize": 12, "markeredgewidth": 2, "linestyle": "none"}
    axes.plot([words], [factor * own], color=theme.ink, **end)
    place = {"xytext": (7, -2), "textcoords": "offset points", "ha": "left", "va": "top"}
    place["bbox"] = {"facecolor": theme.paper, "edgecolor": "none", "pad": 0.8}
    text = f"{paper}:\n{factor:g} x {experiment.names.lms.short(times['of'])}"
    axes.annotate(text, (words, factor * own), color=theme.ink, fontsize=8, **place)
