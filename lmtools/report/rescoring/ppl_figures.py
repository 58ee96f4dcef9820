"""The figure of perplexity against the score that rescoring reaches: a panel for each kind of
perplexity, since kinds do not compare.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from lmtools.report.names import FIRST, SUM, LmPart, SystemParts
from lmtools.report.page.drawing import Picture, Theme, marked
from lmtools.report.page.labels import printed, spread
from lmtools.report.rescoring.experiment import RescoringExperiment
from lmtools.report.rescoring.measure import Measured

KINDS = ("perplexity", "two-way perplexity", "pseudo-perplexity")
MARGIN = 1.08  # times the perplexities at the ends of an axis
LABELS = 0.58  # where labels stand, in parts of an axis


class Point(NamedTuple):
    """A language model: the perplexity of a set's references and, where it rescores alone, the
    score of the set with its 95% interval.
    """

    lm: str
    ppl: float
    score: float
    interval: tuple[float, float]


def ppl_pictures(experiment: RescoringExperiment) -> Iterator[Picture]:
    """Yield for each judged set its score over the perplexity of its references, one point a
    language model that rescores alone.
    """
    for measured in experiment.judged:
        panels = find_points(experiment, measured)
        points = [point for some in panels.values() for point in some]
        if len(points) > 1:
            name, metric = measured.sample.name, experiment.metric_label
            said = ", ".join(
                f"{experiment.names.lms.label(one.lm)} {printed(one.ppl)} and {one.score:.2f}"
                for one in points
            )
            yield Picture(
                f"ppl-{name}",
                f"{metric} on {name} after rescoring with one language model, over the word"
                " perplexity that it gives to the references; bars are 95% bootstrap intervals, the"
                " dashed line is the first pass. Kinds of perplexity do not compare, so each has a"
                " panel.",
                f"Perplexity of the references and {metric} on {name}: {said}.",
                lambda theme, measured=measured, panels=panels: draw_points(
                    theme, experiment, measured, panels
                ),
                wide=True,
            )


def find_points(experiment: RescoringExperiment, measured: Measured) -> dict[str, list[Point]]:
    """Return the points of a set by the kind of perplexity, in printing order."""
    found: dict[str, list[Point]] = {kind: [] for kind in KINDS}
    for (lm, text), tree in experiment.ppl.items():
        system = find_system(experiment, lm)
        if text == measured.sample.name and system in measured.results:
            result = measured.results[system]
            interval = result.bootstrap.score_interval
            point = Point(lm, tree["word_ppl"], result.score, interval)
            found.setdefault(tree.get("kind", KINDS[0]), []).append(point)
    return {kind: points for kind, points in found.items() if points}


def find_system(experiment: RescoringExperiment, lm: str) -> str | None:
    """Return the name of the system that takes the sums of one language model and no other."""
    alone = SystemParts((LmPart(lm, SUM),))
    return next((name for name, one in experiment.systems.items() if one.makeup == alone), None)


def draw_points(
    theme: Theme,
    experiment: RescoringExperiment,
    measured: Measured,
    panels: Mapping[str, Sequence[Point]],
) -> Figure:
    figure = Figure((5 * len(panels) + 0.6, 4.2))
    looks = experiment.names.lms.looks(list(dict.fromkeys(lm for lm, _ in experiment.ppl)))
    first = measured.results[FIRST].score
    span = max(
        max(one.ppl for one in some) / min(one.ppl for one in some) for some in panels.values()
    )
    for axes, (kind, points) in zip(
        figure.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels.items(), strict=True
    ):
        axes.axhline(first, color=theme.color(looks[FIRST]), linestyle="--", linewidth=1)
        for one in points:
            color = theme.color(looks[one.lm])
            axes.plot([one.ppl] * 2, one.interval, color=color, linewidth=3, alpha=0.35)
            mark = {"linestyle": "none", "zorder": 4, **marked(theme, looks[one.lm], 9, 11)}
            axes.plot([one.ppl], [one.score], **mark)
        scale_ppl(axes, [one.ppl for one in points], span)
        write_labels(axes, theme, experiment, points, looks)
        axes.set_xlabel(f"word {kind} of the references (log scale)")
        axes.set_ylabel(f"{experiment.metric_label} on {measured.sample.name}")
        axes.label_outer()
    return figure


def scale_ppl(axes, values: Sequence[float], span: float) -> None:
    """Give the axes a logarithmic scale with plain numbers, on whose left half a panel that spans
    `span` times its lowest perplexity has room.
    """
    low = min(values) / MARGIN
    axes.set_xscale("log")
    axes.set_xlim(low, low * (MARGIN**2 * span) ** 2)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def write_labels(axes, theme: Theme, experiment, points: Sequence[Point], looks) -> None:
    """Write on the right half whose each point is, as near to its height as the others let it."""
    low, high = axes.get_ylim()
    heights = spread([(one.score - low) / (high - low) for one in points], 0.07)
    for one, height in zip(points, heights, strict=True):
        color = theme.color(looks[one.lm])
        text = f"{experiment.names.lms.label(one.lm)}  {printed(one.ppl)}, {one.score:.2f}"
        thread = {"arrowstyle": "-", "color": color, "linewidth": 0.7, "alpha": 0.55}
        place = {"xytext": (LABELS, height), "textcoords": "axes fraction", "va": "center"}
        place["arrowprops"] = thread | {"shrinkA": 1, "shrinkB": 4, "relpos": (0, 0.5)}
        axes.annotate(text, (one.ppl, one.score), fontsize=9, color=color, **place)
