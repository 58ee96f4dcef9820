"""Drawing of figures: paper, lines and legends alike in all of them, and PNG that is the same bytes
each time.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass

import matplotlib
from matplotlib.figure import Figure

from lmtools.report.style import Look

DPI = 160
STARS = ("*", (4, 1, 0))


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
        """matplotlib's settings for it."""
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
    how to draw it, where it stands.
    """

    name: str
    caption: str
    alt: str
    draw: Callable[[Theme], Figure]
    wide: bool = False
    part: str = "figures"

    def png(self, theme: Theme) -> bytes:
        """Return the figure as PNG, without the time or anything that differs from run to run."""
        with matplotlib.rc_context(
            {**matplotlib.rcParamsDefault, **theme.settings, "backend": "agg"}
        ):
            out = io.BytesIO()
            self.draw(theme).savefig(out, format="png", dpi=DPI, metadata={"Software": None})
        return out.getvalue()


def line(axes, theme: Theme, look: Look, label: str, x, y, marker=None) -> None:
    """Draw a system's line in its own look, under its printed name."""
    marks = marked(theme, look, None, 9) | ({} if marker is None else {"marker": marker})
    axes.plot(x, y, linestyle=look.line, label=label, **marks)


def marked(theme: Theme, look: Look, size: float | None, star: float) -> dict:
    """matplotlib's settings of colour and marker, `star` being the size of markers that look
    smaller than they are.
    """
    color = theme.color(look)
    inside = {"markerfacecolor": theme.paper if look.hollow else color}
    return {
        "color": color,
        "marker": look.marker,
        "markersize": star if look.marker in STARS else size,
        **inside,
    }


def write_right_of(axes, point: tuple[float, float], text: str, **style) -> None:
    """Writes `text` to the right of a point."""
    place = {"textcoords": "offset points", "va": "center", "fontsize": 9}
    axes.annotate(text, point, (6, 0), **place, **style)


def beside(axes) -> None:
    """Draw the legend to the right of the axes."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)
