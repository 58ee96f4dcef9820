"""Drawing of figures: paper, lines and legends alike in all of them, and PNG that is the same bytes
each time.
"""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from lmtools.report.style import Look

DPI = 160
STARS = ("*", (4, 1, 0))
PLAIN = FuncFormatter(lambda value, _: f"{value:,g}")


@dataclass(frozen=True)
class Theme:
    """Colours of paper, text and grid."""

    dark: bool
    paper: str
    ink: str
    grid: str

    def color(self, look: Look) -> str:
        """Return the colour of a system on this paper."""
        return look.dark if self.dark else look.light

    @property
    def settings(self) -> dict:
        """Return matplotlib's settings for it."""
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
    """One figure: file name without suffix, what it shows, the same for those who cannot see it,
    how to draw it.
    """

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
    """Return a figure of one panel with the labels of its axes."""
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
    """Return matplotlib's settings of colour and marker, `star` being the size of markers that look
    smaller than they are.
    """
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
    axes.annotate(text, arrowprops=thread, **style, **place)


def beside(axes, of=None) -> None:
    """Draw the legend, of these axes or of those of another panel, to the right of the axes."""
    entries = (of or axes).get_legend_handles_labels()
    axes.legend(*entries, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)


def plain_ticks(axis, major=None) -> None:
    """Set ticks of a logarithmic axis at plain numbers: where `major` puts them, or at 1, 2 and 5
    of every decade.
    """
    axis.set_major_locator(major or LogLocator(subs=(1, 2, 5)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(PLAIN)


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Return places in 0..1 in the order of `places`, at least `gap` apart and else as near to them
    as can be (least squares).

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
    apart = np.empty(len(places))
    apart[order] = np.clip(shifted, 0, room) + gap * np.arange(len(places))
    return apart.tolist()
