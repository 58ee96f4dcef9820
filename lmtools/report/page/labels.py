"""Figures whose lines say at their ends whose they are, and axes of perplexities: logarithmic, with
plain numbers.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from lmtools.report.page.columns import decimal, places
from lmtools.report.page.drawing import Theme

HUGE = 700.0  # a loss whose perplexity is no number any more
FAR = 1.5  # times the median perplexity: what is higher does not count for the scale
# from so many seconds on, seconds a unit
UNITS = ((5400, 3600, "hours"), (90, 60, "minutes"), (0, 1, "seconds"))
EDGE = "A mark on the upper edge stands for what lies far beyond it; its figure is in the label."


def curve(lines: Sequence[dict]) -> np.ndarray:
    """Seconds of training and validation perplexity (validations, 2), as far as it is finite.

    The time of a step is interpolated between the training's lines.
    """
    steps = [
        (line["step"], line["seconds"])
        for line in lines
        if "train_loss" in line and "seconds" in line
    ]
    held_out = [
        (line["step"], line["valid_loss"])
        for line in lines
        if "valid_loss" in line and line["valid_loss"] < HUGE
    ]
    if not held_out or not steps or not steps[-1][1]:
        return np.empty((0, 2))
    (at, losses), (step, seconds) = np.array(held_out).T, np.array([(0, 0), *steps]).T
    return np.stack([np.interp(at, step, seconds), np.exp(losses)], axis=1)


def logarithmic(axes, ends: Sequence[float], above: float) -> float:
    """Gives the axes a logarithmic scale for perplexities `ends` and `above` times as much; the
    highest perplexity that it shows.

    Ends far beyond most of the others do not count, or the others would all look alike.
    """
    low, usual = min(ends), FAR * np.median(ends)
    top = above * max([1.05 * low, *(one for one in ends if one <= usual)])
    margin = (top / low) ** 0.06
    axes.set_yscale("log")
    axes.set_ylim(low / margin, top * margin)
    plain_ticks(axes.yaxis, top / low)
    return top


def plain_ticks(axis, ratio: float = 100) -> None:
    """Ticks of a logarithmic axis at plain numbers, enough of them where it spans no decade."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)) if ratio > 20 else MaxNLocator(7))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def printed(value: float) -> str:
    """Return a perplexity, however high."""
    return decimal(value, places(value)) if value < 1e6 else f"{value:.1e}"


def beside_ends(axes, theme: Theme, labels, x: float) -> None:
    """Writes each label (look, x, y, text) at `x`, in parts of the axes' width, as near to the
    height of its end as the others let it.
    """
    if not labels:
        return
    low, high = np.log(axes.get_ylim())
    lift = 0.03  # the lowest label stands above the axis
    heights = spread([(np.log(y) - low) / (high - low) - lift for _, _, y, _ in labels], 0.056)
    for (look, end, y, text), height in zip(labels, heights, strict=True):
        color = theme.color(look)
        thread = {"arrowstyle": "-", "color": color, "linewidth": 0.7, "alpha": 0.55}
        thread |= {"shrinkA": 1, "shrinkB": 3, "relpos": (0, 0.5)}
        style = {"textcoords": "axes fraction", "va": "center", "fontsize": 9, "color": color}
        style["arrowprops"] = thread
        style["bbox"] = {"facecolor": theme.paper, "edgecolor": "none", "pad": 0.8}
        axes.annotate(text, (end, y), (x, height + lift), annotation_clip=False, **style)


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Places in 0..1 in the order of `places`, at least `gap` apart and else as near to them as can
    be (least squares).

    Where 1 has no room for all, they are as far apart as can be.
    """
    gap = min(gap, 1 / max(len(places) - 1, 1))
    order = np.argsort(places, kind="stable")
    # sum and number of shifted places that want to go past each other: they share their mean
    blocks: list[list[float]] = []
    for rank, place in enumerate(np.asarray(places)[order]):
        blocks.append([place - gap * rank, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1] = [blocks[-1][0] + total, blocks[-1][1] + count]
    shifted = np.concatenate([np.full(int(count), total / count) for total, count in blocks])
    room = 1 - gap * (len(places) - 1)
    found = np.empty(len(places))
    found[order] = np.clip(shifted, 0, room) + gap * np.arange(len(places))
    return found.tolist()
