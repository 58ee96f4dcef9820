"""The figure of perplexity against the score that rescoring reaches: a panel for each kind of
perplexity, since kinds do not compare.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lmtools.report.experiment import Experiment
from lmtools.report.figures.rescoring import draw_first
from lmtools.report.names import FIRST, SUM, LmPart, SystemParts
from lmtools.report.page.drawing import (
    Picture,
    Theme,
    marked,
    plain_ticks,
    spread,
    write_with_thread,
)
from lmtools.report.page.ends import show_ppl
from lmtools.report.parts.measure import Measured
from lmtools.report.rows import FigureRow
from lmtools.report.tables.rescoring import ppl_of_lists

KINDS = ("perplexity", "two-way perplexity", "pseudo-perplexity")
MARGIN = 1.08  # times the perplexities at the ends of an axis
LABELS = 0.58  # where labels stand, in parts of an axis
CAPTION = (
    "after rescoring with one language model, over the word perplexity that it gives to the"
    " references; bars are 95% bootstrap intervals, the dashed line is the first pass. Kinds of"
    " perplexity do not compare, so each has a panel."
)


def ppl_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield for each judged set its score over the perplexity of its references, one point a
    language model that rescores alone.
    """
    label = experiment.lists.names.lms.label
    for measured in experiment.lists.judged:
        panels = find_points(experiment, measured)
        points = [point for values in panels.values() for point in values.items()]
        if len(points) > 1:
            name, metric = measured.sample.name, experiment.lists.metric_label
            pairs = [
                f"{label(lm)} {show_ppl(ppl)} and {row.value:.2f}" for lm, (ppl, row) in points
            ]
            yield Picture(
                f"ppl-{name}",
                f"{metric} on {name} {CAPTION}",
                f"Perplexity of the references and {metric} on {name}: {', '.join(pairs)}.",
                partial(draw_points, experiment, measured, panels),
                wide=True,
            )


def find_points(
    experiment: Experiment, measured: Measured
) -> dict[str, dict[str, tuple[float, FigureRow]]]:
    """Return by the kind of perplexity, in printing order, each language model that rescores alone:
    the perplexity of a set's references, and the row of its score.
    """
    panels: dict[str, dict[str, tuple[float, FigureRow]]] = {kind: {} for kind in KINDS}
    lists, name = experiment.lists, measured.sample.name
    for (lm, text), tree in ppl_of_lists(experiment).items():
        alone = SystemParts((LmPart(lm, SUM),))
        system = next((n for n, item in lists.systems.items() if item.makeup == alone), None)
        if text == name and system in measured.results:
            row = experiment.rows.find("system", system, lists.metric, name)
            panels.setdefault(tree.get("kind", KINDS[0]), {})[lm] = tree["word_ppl"], row
    return {kind: points for kind, points in panels.items() if points}


def draw_points(
    experiment: Experiment, measured: Measured, panels: Mapping[str, Mapping], theme: Theme
) -> Figure:
    """Draw a panel a kind, an interval and a mark a language model."""
    lists, names = experiment.lists, experiment.lists.names.lms
    figure = Figure((5 * len(panels) + 0.6, 4.2))
    looks = names.looks(list(dict.fromkeys(lm for lm, _ in ppl_of_lists(experiment))))
    values = [[ppl for ppl, _ in points.values()] for points in panels.values()]
    span = max(max(column) / min(column) for column in values)
    every = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (kind, points), column in zip(every, panels.items(), values, strict=True):
        draw_first(axes.axhline, theme, looks[FIRST], measured.results[FIRST].score)
        for lm, (ppl, row) in points.items():
            bar = {"color": theme.color(looks[lm]), "linewidth": 3, "alpha": 0.35}
            axes.plot([ppl] * 2, (row.low, row.high), **bar)
            mark = {"linestyle": "none", "zorder": 4, **marked(theme, looks[lm], 9, 11)}
            axes.plot([ppl], [row.value], **mark)
        start = min(column) / MARGIN  # a panel that spans as much as any has its left half
        axes.set_xscale("log")
        axes.set_xlim(start, start * (MARGIN**2 * span) ** 2)
        plain_ticks(axes.xaxis, MaxNLocator(5))
        low, high = axes.get_ylim()
        heights = spread([(row.value - low) / (high - low) for _, row in points.values()], 0.07)
        for (lm, (ppl, row)), height in zip(points.items(), heights, strict=True):
            place = {"xy": (ppl, row.value), "xytext": (LABELS, height), "thread": {"shrinkB": 4}}
            text = f"{names.label(lm)}  {show_ppl(ppl)}, {row.value:.2f}"
            write_with_thread(axes, theme, looks[lm], text, **place)
        axes.set_xlabel(f"word {kind} of the references (log scale)")
        axes.set_ylabel(f"{lists.metric_label} on {measured.sample.name}")
        axes.label_outer()
    return figure
