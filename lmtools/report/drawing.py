"""Drawing of figures: paper, lines and legends alike in all of them, and PNG that is the same bytes
each time; panels of perplexities whose lines say at their ends whose they are.
"""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from lmtools.report.style import Look
from lmtools.report.table import decimal, places

DPI = 160
STARS = ("*", (4, 1, 0))
PLAIN = FuncFormatter(lambda value, _: f"{value:,g}")
FAR = 1.5  # times the median perplexity: what is higher does not count for the scale
# from so many seconds on, seconds a unit
UNITS = ((5400, 3600, "hours"), (90, 60, "minutes"), (0, 1, "seconds"))
EDGE = "A mark on the upper edge stands for what lies far beyond it; its figure is in the label."
LIFT = 0.03  # the lowest label stands above the axis
ROUND = (1, 2, 2.5, 5, 10)  # steps of ticks at round numbers


@dataclass(frozen=True)
class Theme:
    """Colours of paper, text and grid."""

    dark: bool
    paper: str
    ink: str
    grid: str

    def color(self, look: Look) -> str:
        return look.dark if self.dark else look.light

    @property
    def settings(self) -> dict:
        ink = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color")
        return dict.fromkeys(ink, self.ink) | {
            "figure.facecolor": self.paper,
            "axes.facecolor": self.paper,
            "axes.edgecolor": self.grid,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 11,
            "axes.titlelocation": "left",
            "grid.color": self.grid,
            "grid.linewidth": 0.7,
            "font.size": 10,
            "legend.frameon": False,
            "lines.linewidth": 1.8,
            "lines.markersize": 5.5,
            "figure.constrained_layout.use": True,
            "text.parse_math": False,  # a dollar in a name is a dollar
        }


LIGHT = Theme(False, "#ffffff", "#1f2430", "#dfe3e9")
DARK = Theme(True, "#171b22", "#e4e8ef", "#363d49")


@dataclass(frozen=True)
class Picture:
    """One figure: file name without suffix, what it shows, also for the blind, how to draw it."""

    name: str
    caption: str
    alt: str
    draw: Callable[[Theme], Figure]
    wide: bool = False

    def png(self, theme: Theme) -> bytes:
        """Return the figure as PNG, without the time or anything that differs from run to run."""
        with matplotlib.rc_context(
            {**matplotlib.rcParamsDefault, **theme.settings, "backend": "agg"}
        ):
            out = io.BytesIO()
            self.draw(theme).savefig(out, format="png", dpi=DPI, metadata={"Software": None})
        return out.getvalue()


def chart(size: tuple[float, float], x: str, y: str) -> tuple[Figure, Axes]:
    figure = Figure(size)
    axes = figure.subplots()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure, axes


def line(axes, theme: Theme, look: Look, label: str, x, y, marker=None) -> None:
    """Draw a system's line in its own look, under its printed name."""
    marks = marked(theme, look, None, 9) | ({} if marker is None else {"marker": marker})
    axes.plot(x, y, linestyle=look.line, label=label, **marks)


def marked(theme: Theme, look: Look, size: float | None, star: float) -> dict:
    """Return matplotlib's settings of colour and marker; `star` is the size of STARS."""
    color = theme.color(look)
    return {
        "color": color,
        "marker": look.marker,
        "markersize": star if look.marker in STARS else size,
        "markerfacecolor": theme.paper if look.hollow else color,
    }


def write_right_of(axes, point: tuple[float, float], text: str, **style) -> None:
    """Write `text` to the right of a point."""
    place = {"textcoords": "offset points", "va": "center", "fontsize": 9}
    axes.annotate(text, point, (6, 0), **place | style)


def write_with_thread(axes, theme: Theme, look: Look, text: str, **place) -> None:
    """Write `text` in the colour of a look, with a thread to the point that it is of."""
    color = theme.color(look)
    thread = {"arrowstyle": "-", "color": color, "linewidth": 0.7, "alpha": 0.55}
    thread |= {"shrinkA": 1, "relpos": (0, 0.5)} | place.pop("thread")
    style = {"textcoords": "axes fraction", "va": "center", "fontsize": 9, "color": color}
    # a line behind the text does not run through it
    style["bbox"] = {"facecolor": theme.paper, "edgecolor": "none", "pad": 0.8}
    axes.annotate(text, arrowprops=thread, **style, **place)


def beside(axes, of=None) -> None:
    """Draw the legend, of these axes or of those of another panel, to the right of the axes."""
    entries = (of or axes).get_legend_handles_labels()
    axes.legend(*entries, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)


def plain_ticks(axis, major=None) -> None:
    """Set plain numbers as logarithmic ticks: where `major` puts them, or at 1, 2, 5 of decades."""
    axis.set_major_locator(major or LogLocator(subs=(1, 2, 5)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(PLAIN)


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Return places in 0..1 in the order of `places`, at least `gap` (or as 1 has room) apart and
    else as near to them as can be (least squares).
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
    apart = np.empty(len(places))
    apart[order] = np.clip(shifted, 0, room) + gap * np.arange(len(places))
    return apart.tolist()


@dataclass
class EndPanel:
    """A panel; what ends above `top` is a mark on its upper edge."""

    axes: Axes
    theme: Theme
    top: float
    labels: list[tuple[Look, float, float, str]] = field(default_factory=list)

    @property
    def edge(self) -> float:
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
        """Write each label at `x`, in parts of the axes' width, near to its end."""
        labels = self.labels if labels is None else labels
        if not labels:
            return
        low, high = np.log(self.axes.get_ylim())
        heights = spread([(np.log(y) - low) / (high - low) - LIFT for _, _, y, _ in labels], 0.056)
        for (look, end, y, text), height in zip(labels, heights, strict=True):
            place = {"xy": (end, y), "xytext": (x, height + LIFT), "annotation_clip": False}
            place["thread"] = {"shrinkB": 3}
            write_with_thread(self.axes, self.theme, look, text, **place)


def end_panel(
    axes: Axes, theme: Theme, ends: Sequence[float], above: float, steps=None
) -> EndPanel:
    """Return a panel with a logarithmic scale for perplexities `ends`, far ones left out, and
    `above` times as much; `steps`: ticks where it spans no decade.
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
