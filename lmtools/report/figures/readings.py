"""Values of papers' figures on figures of ours: dashed lines, marks, and a note below."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from lmtools.report.cited import FigureQuote
from lmtools.report.experiment import Experiment
from lmtools.report.page.drawing import Picture, Theme

DASHED = {"linestyle": (0, (6, 3)), "linewidth": 1.1}


def add_readings(experiment: Experiment, pictures: Iterable[Picture]) -> Iterator[Picture]:
    """Yield the figures, each with what is read off the papers' figures of the same."""
    for picture in pictures:
        quotes = [
            quote
            for quote in experiment.names.style.readings
            if picture.name == quote.beside or picture.name.startswith(f"{quote.beside}-")
        ]
        yield quoting(experiment, picture, quotes) if quotes else picture


def quoting(experiment: Experiment, picture: Picture, quotes: Sequence[FigureQuote]) -> Picture:
    """Add to a figure what is read off those of papers."""
    citations, notes = experiment.names.style.citations, []
    for quote in quotes:
        unsure = f" Uncertain: {quote.uncertain}" if quote.uncertain else ""
        paper = citations[quote.paper].label
        notes.append(f"[{paper}, Figure {quote.figure}: {quote.text}{unsure}]")

    def draw(theme: Theme) -> Figure:
        figure = picture.draw(theme)
        for quote in quotes:
            draw_quote(experiment, theme, figure, quote)
        return figure

    return replace(picture, caption=" ".join([picture.caption, *notes]), draw=draw)


def draw_quote(experiment: Experiment, theme: Theme, figure: Figure, quote: FigureQuote) -> None:
    """Draw lines and marks of one quote on each panel; levels only where they compare, as far as
    the panel reaches.
    """
    paper = f"{experiment.names.style.citations[quote.paper].label} Figure {quote.figure}"
    style = {"color": theme.ink, "zorder": 1.5}
    for axes in figure.axes:
        for x in quote.x:
            axes.axvline(x, **style, **DASHED)
            place = {"xycoords": axes.get_xaxis_transform(), "textcoords": "offset points"}
            turned = {"rotation": 90, "ha": "right", "va": "top", "fontsize": 8}
            text = f"{paper}: {x:g}"
            axes.annotate(text, (x, 0.98), (-3, 0), color=theme.ink, **place, **turned)
        low, high = axes.get_ylim()
        levels = quote.y if experiment.options & set(quote.same) else ()
        for y in (y for y in levels if low < y < high):
            axes.axhline(y, **style, **DASHED)
            place = {"transform": axes.get_yaxis_transform(), "va": "bottom", "fontsize": 8}
            axes.text(0.01, y, f"{paper}: {y:g}", color=theme.ink, **place)
        if quote.times:
            draw_times(experiment, theme, axes, quote.times, paper=paper)


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
    time = float(np.exp(np.interp(words, x, np.log(y))))
    axes.plot([words, words], [time, factor * time], color=theme.ink, **DASHED)
    end = {"marker": "_", "markersize": 12, "markeredgewidth": 2, "linestyle": "none"}
    axes.plot([words], [factor * time], color=theme.ink, **end)
    place = {"xytext": (7, -2), "textcoords": "offset points", "ha": "left", "va": "top"}
    place["bbox"] = {"facecolor": theme.paper, "edgecolor": "none", "pad": 0.8}
    text = f"{paper}:\n{factor:g} x {experiment.names.lms.short(times['of'])}"
    axes.annotate(text, (words, factor * time), color=theme.ink, fontsize=8, **place)
