"""Learning curves of language models by themselves; every line says at its end whose it is."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from lmtools.report.experiment import Experiment
from lmtools.report.page.drawing import PLAIN, Picture, Theme
from lmtools.report.page.ends import EDGE, ROUND, EndPanel, end_panel, scale_of, show_ppl
from lmtools.report.parts.models import HUGE, Model, curve
from lmtools.report.style import Look
from lmtools.report.tables.lms import LEFT_TO_RIGHT, SHORT

ABOVE = 2.0  # times the highest end: how far up a learning curve is shown
FEW = 12  # labels beside axes of the usual height
CURVE = (
    "perplexity of a prediction on the validation text over updates and over the time spent in"
    f" training steps; the number is where a training ended. {EDGE}"
)


def learning_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield learning curves of the models outside grids, those together that have the same kind of
    perplexity.
    """
    for kind, short in SHORT.items():
        models = {m.label: m for m in experiment.main if m.kind == kind and m.lines}
        title = "Learning curves" if kind == LEFT_TO_RIGHT else f"Learning curves, {kind}"
        name = f"learning-{short.replace(' ', '-')}"
        yield from curve_pictures(models, title, name, experiment.names.style.runs)


def curve_pictures(
    models: Mapping[str, Model], title: str, name: str, runs: Sequence[Look], note: str = ""
) -> Iterator[Picture]:
    """Yield validation perplexity of models by label over updates and over training time, if any
    has one; the caption ends with `note`. Models of one family take the looks of `runs`.
    """
    curves = {label: points for label, model in models.items() if len(points := progress(model))}
    lost = [label for label in models if label not in curves]
    if curves:
        ends = [f"{label} {show_ppl(points[-1, 2])}" for label, points in curves.items()]
        missing = f" Without a finite validation loss, and so not shown: {', '.join(lost)}."
        yield Picture(
            name,
            f"{title}: {CURVE}{missing * bool(lost)}{note}",
            f"{title}, validation perplexity at the end of training: {', '.join(ends)}.",
            partial(draw_curves, find_looks(models, runs), curves),
            wide=True,
        )


def progress(model: Model) -> np.ndarray:
    """Return updates, seconds of training and validation perplexity (validations, 3), as far as it
    is finite.
    """
    steps = [line["step"] for line in model.lines if line.get("valid_loss", HUGE) < HUGE]
    timed = curve(model.lines)
    return np.column_stack([steps, timed]) if len(timed) else np.empty((0, 3))


def draw_curves(
    looks: Mapping[str, Look], curves: Mapping[str, np.ndarray], theme: Theme
) -> Figure:
    """Draw learning curves over updates and over time, labelled at the right."""
    figure = Figure((11.5, height(len(curves))))
    panels = figure.subplots(1, 2, sharey=True)
    first = end_panel(panels[0], theme, [p[-1, 2] for p in curves.values()], ABOVE, steps=ROUND)
    unit, name = scale_of(max(points[-1, 1] for points in curves.values()))
    for axes, column, scale in zip(panels, (0, 1), (1, unit), strict=True):
        panel = EndPanel(axes, theme, first.top)
        for label, points in curves.items():
            shown = len(points) if points[-1, 2] <= first.top else 1
            x, every = points[:, column] / scale, max(1, shown // 10)
            panel.line(looks[label], label, x, points[:, 2], markevery=every)
        axes.set_xlim(0, 1.03 * max(points[-1, column] for points in curves.values()) / scale)
        axes.xaxis.set_major_formatter(PLAIN)
    panel.write()
    panels[0].set_xlabel("updates")
    panels[1].set_xlabel(f"training time ({name})")
    panels[0].set_ylabel("validation perplexity (a prediction, log scale)")
    return figure


def height(labels: int) -> float:
    """Return the inches that so many labels at the ends of lines want."""
    return 4.4 if labels <= FEW else 4.4 * labels / FEW


def find_looks(models: Mapping[str, Model], runs: Sequence[Look]) -> dict[str, Look]:
    """Return the look of each model: that of its family where no other one is of it."""
    families = [model.shown.label for model in models.values()]
    if len(set(families)) == len(families):
        return {label: model.shown.look for label, model in models.items()}
    return {label: runs[i % len(runs)] for i, label in enumerate(models)}
