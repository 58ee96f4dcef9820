"""Panels of perplexities on a logarithmic axis, whose lines say at their ends whose they are."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from lmtools.report.page.drawing import Theme, plain_ticks, spread, write_with_thread
from lmtools.report.page.table import decimal, places
from lmtools.report.style import Look

FAR = 1.5  # times the median perplexity: what is higher does not count for the scale
# from so many seconds on, seconds a unit
UNITS = ((5400, 3600, "hours"), (90, 60, "minutes"), (0, 1, "seconds"))
EDGE = "A mark on the upper edge stands for what lies far beyond it; its figure is in the label."
LIFT = 0.03  # the lowest label stands above the axis
ROUND = (1, 2, 2.5, 5, 10)  # steps of ticks at round numbers


@dataclass
class EndPanel:
    """A panel; what ends above `top` is a mark on its upper edge."""

    axes: Axes
    theme: Theme
    top: float
    labels: list[tuple[Look, float, float, str]] = field(default_factory=list)

    @property
    def edge(self) -> float:
        """The upper end of the axis."""
        return self.axes.get_ylim()[1]

    def line(self, look: Look, title: str, x, y, **style) -> None:
        """Draw a line in its own look, to be labelled at its end with its last perplexity."""
        text = f"{title}  {show_ppl(y[-1])}".strip()
        if y[-1] > self.top:
            x, y = x[-1:], [self.edge]
        self.mark(look, x, y, **style)
        self.labels.append((look, x[-1], y[-1], text))

    def mark(self, look: Look, x, y, **style) -> None:
        """Draw a line in its own look with marks at its points."""
        size = 9 if look.marker == "*" else 5.5
        usual = {"marker": look.marker, "markersize": size, "linestyle": look.line}
        color = self.theme.color(look)
        self.axes.plot(x, y, color=color, clip_on=len(x) > 1, **usual | style)

    def write(self, x: float = 1.04, labels=None) -> None:
        """Write each label at `x`, in parts of the axes' width, as near to the height of its end as
        the others let it.
        """
        labels = self.labels if labels is None else labels
        if not labels:
            return
        low, high = np.log(self.axes.get_ylim())
        heights = spread([(np.log(y) - low) / (high - low) - LIFT for _, _, y, _ in labels], 0.056)
        box = {"facecolor": self.theme.paper, "edgecolor": "none", "pad": 0.8}
        for (look, end, y, text), height in zip(labels, heights, strict=True):
            place = {"xy": (end, y), "xytext": (x, height + LIFT), "annotation_clip": False}
            place |= {"bbox": box, "thread": {"shrinkB": 3}}
            write_with_thread(self.axes, self.theme, look, text, **place)


def end_panel(
    axes: Axes, theme: Theme, ends: Sequence[float], above: float, steps=None
) -> EndPanel:
    """Return a panel with a logarithmic scale for perplexities `ends` and `above` times as much;
    `steps` are those of its ticks where it spans no decade.

    Ends far beyond most of the others do not count, or the others would all look alike.
    """
    low, usual = min(ends), FAR * np.median(ends)
    top = above * max([1.05 * low, *(end for end in ends if end <= usual)])
    margin = (top / low) ** 0.06
    axes.set_yscale("log")
    axes.set_ylim(low / margin, top * margin)
    plain_ticks(axes.yaxis, None if top / low > 20 else MaxNLocator(7, steps=steps))
    return EndPanel(axes, theme, top)


def scale_of(seconds: float) -> tuple[float, str]:
    """Return the seconds of the unit that fits so much time, and its name."""
    return next((unit, name) for least, unit, name in UNITS if seconds >= least)


def show_ppl(value: float) -> str:
    """Return a perplexity, however high."""
    return decimal(value, places(value)) if value < 1e6 else f"{value:.1e}"
