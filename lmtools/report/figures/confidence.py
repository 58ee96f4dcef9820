"""Figures of confidences: how often words are right by their confidence, and the ROC."""

from collections.abc import Mapping
from functools import partial

from matplotlib.figure import Figure

from lmtools.evaluate.word_confidence import JudgedWords
from lmtools.report.names import Names
from lmtools.report.page.drawing import LIGHT, Picture, Theme, beside, line


def draw_confidences(judged: Mapping[str, JudgedWords]) -> bytes:
    """Draw reliability and ROC, a line a set of confidences; return PNG."""
    return Picture("confidences", "", "", partial(draw_panels, judged)).png(LIGHT)


def draw_panels(judged: Mapping[str, JudgedWords], theme: Theme) -> Figure:
    """Draw both panels."""
    figure = Figure((10, 4))
    reliability, roc = figure.subplots(1, 2)
    looks = Names().looks(list(judged))
    diagonal = {"color": theme.ink, "linewidth": 0.8, "linestyle": ":"}
    for axes in (reliability, roc):
        axes.plot([0, 1], [0, 1], **diagonal)
    for name, words in judged.items():
        rows = words.reliability()
        rows = rows[rows[:, 2] > 0]
        line(reliability, theme, looks[name], name, x=rows[:, 0], y=rows[:, 1])
        label = (
            f"{name}\nECE {100 * words.calibration_error:.1f}%, NCE {words.cross_entropy:.2f},"
            f" area {words.area:.2f}"
        )
        false, true = words.roc().T
        line(roc, theme, looks[name], label, x=false, y=true, marker="")
    reliability.set_title("Reliability")
    reliability.set_xlabel("mean confidence")
    reliability.set_ylabel("share of words that are right")
    roc.set_title("ROC")
    roc.set_xlabel("share of wrong words above the threshold")
    roc.set_ylabel("share of right words above it")
    beside(roc)
    return figure
