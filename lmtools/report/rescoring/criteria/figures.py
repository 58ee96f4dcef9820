"""Figures of training criteria: perplexity over the time of training, and against the time of a
step; every line says whose it is.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure

from lmtools.report.page.drawing import Picture, Theme
from lmtools.report.page.labels import (
    EDGE,
    UNITS,
    beside_ends,
    curve,
    logarithmic,
    plain_ticks,
    printed,
)
from lmtools.report.rescoring.criteria.trunks import CriteriaTrunk, Entry, kind, perplexity, trunks
from lmtools.report.rescoring.experiment import RescoringExperiment

FULL = "full"  # the panel of criteria over the whole vocabulary
PANEL = 6  # lines that one panel can hold


def criteria_pictures(experiment: RescoringExperiment) -> Iterator[Picture]:
    """For each trunk: perplexity over the time of training, and against the time of a step."""
    for trunk in trunks(experiment):
        yield from time_pictures(experiment, trunk)
        yield from price_pictures(experiment, trunk)


def time_pictures(experiment: RescoringExperiment, trunk: CriteriaTrunk) -> Iterator[Picture]:
    """Validation perplexity over training time, one line a criterion."""
    curves = {one: curve(experiment.learning.get(one.name, ())) for one in trunk.entries}
    curves = {one: points for one, points in curves.items() if len(points)}
    if len(curves) > 1:
        ends = ", ".join(
            f"{title} {curves[one][-1, 1]:.4g}"
            for one, title in named(trunk).items()
            if one in curves
        )
        yield Picture(
            f"criteria-{trunk.key}-time",
            f"{trunk.title}: perplexity of a token of the validation text, over the full"
            " vocabulary, against the time spent in training steps; the number is where a training"
            f" ended. Equal distances sideways are equal factors of time. {EDGE}",
            f"Validation perplexity at the end of training: {ends}.",
            lambda theme: draw_curves(theme, trunk, curves),
            wide=len(curves) > PANEL,
            part="criteria",
        )


def price_pictures(experiment: RescoringExperiment, trunk: CriteriaTrunk) -> Iterator[Picture]:
    """Perplexity against the time of a training step, one point a criterion."""
    texts = [*(measured.sample.name for measured in experiment.judged), "valid"]
    text = next(
        (text for text in texts if any(perplexity(experiment, one, text) for one in trunk.entries)),
        "valid",
    )
    points = {one: (one.milliseconds, perplexity(experiment, one, text)) for one in trunk.entries}
    points = {
        one: point for one, point in points.items() if all(point) and np.isfinite(point).all()
    }
    if len(points) > 1:
        titles, what = named(trunk), f"word {kind(experiment, trunk, text)} on {text}"
        said = ", ".join(
            f"{titles[one]} {time:.4g} ms and {ppl:.4g}" for one, (time, ppl) in points.items()
        )
        yield Picture(
            f"criteria-{trunk.key}-price",
            f"{trunk.title}: {what} against the time of a training step; the number is the"
            " perplexity, the dashed lines are those of the full softmax (CE): left of it is"
            f" faster, below it better. {EDGE}",
            f"Time of a training step and {what}: {said}.",
            lambda theme: draw_price(theme, trunk, points, what),
            wide=len(points) > PANEL,
            part="criteria",
        )


def named(trunk: CriteriaTrunk) -> dict[Entry, str]:
    """Return the title of each entry."""
    return dict(zip(trunk.entries, trunk.titles(), strict=True))


def draw_curves(theme: Theme, trunk: CriteriaTrunk, curves) -> Figure:
    """Draw one panel, or of many criteria one a family, each with the full softmax beside."""
    families: dict[str, list[Entry]] = {}
    for one in curves:
        families.setdefault(one.shown.panel if len(curves) > PANEL else "", []).append(one)
    figure = Figure((6.6, 4.4) if len(families) == 1 else (11.5, 4.2))
    panels = figure.subplots(1, len(families), sharex=True, sharey=True, squeeze=False)[0]
    top = logarithmic(panels[0], [points[-1, 1] for points in curves.values()], 2.5)
    longest, shortest = (pick(points[-1, 0] for points in curves.values()) for pick in (max, min))
    unit, name = next((unit, name) for least, unit, name in UNITS if longest >= least)
    panels[0].set_xscale("log")
    panels[0].set_xlim(
        max(min(points[0, 0] for points in curves.values()) / 1.1, shortest / 12) / unit,
        1.1 * longest / unit,
    )
    plain_ticks(panels[0].xaxis)
    for axes, (family, ones) in zip(panels, families.items(), strict=True):
        reference = [trunk.full] if trunk.full in curves and trunk.full not in ones else []
        draw_family(
            axes, theme, trunk, {one: curves[one] / (unit, 1) for one in [*reference, *ones]}, top
        )
        axes.set_title(family)
        axes.set_xlabel(f"training time ({name}, log scale)")
    panels[0].set_ylabel("validation perplexity (a token, log scale)")
    return figure


def draw_family(axes, theme: Theme, trunk: CriteriaTrunk, curves, top: float) -> None:
    """Draw the curves (time, perplexity) of one panel; of a training that ends above `top` only a
    mark on the edge.
    """
    labels, titles, edge = [], named(trunk), axes.get_ylim()[1]
    for one, points in curves.items():
        x, y = points.T if points[-1, 1] <= top else (points[-1:, 0], [edge])
        draw_line(axes, theme, one, trunk, x, y)
        labels.append((one.shown.look, x[-1], y[-1], f"{titles[one]}  {printed(points[-1, 1])}"))
    beside_ends(axes, theme, labels, 1.04)


def draw_price(theme: Theme, trunk: CriteriaTrunk, points, what: str) -> Figure:
    figure = Figure((10, 4.6) if len(points) > PANEL else (6.6, 4.4))
    axes = figure.subplots()
    top = logarithmic(axes, [ppl for _, ppl in points.values()], 1)
    edge, times = axes.get_ylim()[1], sorted(time for time, _ in points.values())
    axes.set_xlim(0, 1.08 * times[-1])
    if trunk.full in points:
        time, ppl = points[trunk.full]
        for draw, at in ((axes.axvline, time), (axes.axhline, ppl)):
            draw(
                at,
                color=theme.color(trunk.full.shown.look),
                linestyle="--",
                linewidth=0.9,
                alpha=0.6,
            )
    labels, titles = [], named(trunk)
    for one, (time, ppl) in points.items():
        height = ppl if ppl <= top else edge
        draw_line(axes, theme, one, trunk, [time], [height])
        labels.append((one.shown.look, time, height, f"{titles[one]}  {printed(ppl)}"))
    gap, slow = max((after - before, after) for before, after in pairwise(times))
    # room for the labels of the faster ones between them and the slower ones
    wide = gap > 0.45 * times[-1]
    fast = [one for one in labels if wide and one[1] < slow]
    for group, place in (
        (fast, (slow - 0.86 * gap) / (1.08 * times[-1])),
        ([one for one in labels if one not in fast], 1.04),
    ):
        beside_ends(axes, theme, group, place)
    axes.set_xlabel("milliseconds a training step")
    axes.set_ylabel(f"{what} (log scale)")
    return figure


def draw_line(axes, theme: Theme, one: Entry, trunk: CriteriaTrunk, x, y) -> None:
    """Draw a criterion's line in its own look with a mark at its end; that of the second and
    further models of a criterion is hollow.
    """
    look = one.shown.look
    twins = [entry for entry in trunk.entries if entry.criterion == one.criterion]
    style = {
        "marker": look.marker,
        "linestyle": look.line,
        "markersize": 9 if look.marker == "*" else 5.5,
    }
    hollow = {"markerfacecolor": theme.paper} if twins.index(one) else {}
    style |= {
        "linewidth": 2.2 if one.shown.panel == FULL else 1.5,
        "markevery": [-1],
        "clip_on": len(x) > 1,
    }
    axes.plot(x, y, color=theme.color(look), label=one.name, **style, **hollow)
