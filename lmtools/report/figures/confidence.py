"""Figures of confidences: how often words are right by their confidence, and the ROC."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from matplotlib.figure import Figure

from lmtools.evaluate.word_confidence import JudgedWords
from lmtools.report.drawing import LIGHT, Picture, Theme, beside, line
from lmtools.report.experiment import Experiment
from lmtools.report.names import Names
from lmtools.report.parts.confidences import POSTERIOR
from lmtools.report.style import Look
from lmtools.report.table import decimal

CAPTION = (
    "Word confidences on {}. Left: share of words that are right at the mean confidence of each of"
    " ten bins; the dotted line is a confidence that says what is so. Right: share of right and of"
    " wrong words above each threshold."
)


def confidence_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield for each set that weights were not tuned on reliability and ROC of the words of
    networks, before calibration and after it.
    """
    for place in (measured.sample.name for measured in experiment.lists.judged):
        judged, looks = {}, {}
        systems = experiment.lists.words_of(place)
        of_systems = experiment.names.looks(list(systems))
        for name, held in systems.items():
            for kind, words in held.judged.items():
                label, look = f"{experiment.names.label(name)}, {kind}", of_systems[name]
                judged[label] = words
                raw = kind == POSTERIOR
                looks[label] = replace(look, line="--" if raw else "-", hollow=raw)
        if judged:
            errors = [
                f"{name} {100 * words.calibration_error:.2f}%" for name, words in judged.items()
            ]
            yield Picture(
                f"confidence-{place}",
                CAPTION.format(place),
                f"Expected calibration error: {', '.join(errors)}.",
                partial(draw_panels, judged, looks),
                wide=True,
            )


def draw_confidences(judged: Mapping[str, JudgedWords]) -> bytes:
    """Draw reliability and ROC, a line a set of confidences; return PNG."""
    looks = Names().looks(list(judged))
    return Picture("confidences", "", "", partial(draw_panels, judged, looks)).png(LIGHT)


def draw_panels(
    judged: Mapping[str, JudgedWords], looks: Mapping[str, Look], theme: Theme
) -> Figure:
    """Draw both panels."""
    figure = Figure((10, 4))
    reliability, roc = figure.subplots(1, 2)
    diagonal = {"color": theme.ink, "linewidth": 0.8, "linestyle": ":"}
    for axes in (reliability, roc):
        axes.plot([0, 1], [0, 1], **diagonal)
    for name, words in judged.items():
        rows = words.reliability()
        rows = rows[rows[:, 2] > 0]
        label = (
            f"{name}\nECE {100 * words.calibration_error:.1f}%, NCE {decimal(words.cross_entropy)},"
            f" area {decimal(words.area)}"
        )
        line(reliability, theme, looks[name], label, x=rows[:, 0], y=rows[:, 1])
        false, true = words.roc().T
        line(roc, theme, looks[name], name, x=false, y=true, marker="")
    reliability.set_title("Reliability")
    reliability.set_xlabel("mean confidence")
    reliability.set_ylabel("share of words that are right")
    roc.set_title("ROC")
    roc.set_xlabel("share of wrong words above the threshold")
    roc.set_ylabel("share of right words above it")
    beside(roc, reliability)
    return figure
