"""The figures of rescored lists, for light and for dark paper; every system has one colour, marker
and line in all of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from lmtools.report.drawing import (
    Picture,
    Theme,
    beside,
    chart,
    line,
    marked,
    plain_ticks,
    show_ppl,
    spread,
    write_right_of,
    write_with_thread,
)
from lmtools.report.experiment import Experiment
from lmtools.report.measure import LENGTHS, Measured, length_classes
from lmtools.report.rescoring_tables import PSEUDO_KIND, ppl_of_lists, span
from lmtools.report.rows import FigureRow
from lmtools.report.style import FIRST, ORACLE, SUM, LmPart, Look, Names, SystemParts
from lmtools.rescoring.tuning import FLAT
from lmtools.rescoring.tuning_options import INTERPOLATION
from lmtools.rescoring.weights import Weights

LINES, ROWS = 6, 30  # that one figure can hold
DEPTH = (
    "when only the first hypotheses of each list are there to choose from, with the weights tuned"
    " on whole lists; the dashed line is the first pass."
)
SCALE = (
    "on the tuning set over the scale of the language model, the other weights as tuned. The mark"
    " is the chosen scale; the bar of the same colour at the bottom is the flat region around it,"
    f" scales within {FLAT} of the best score. The dashed line is the first pass."
)
LEARNING = (
    "Learning curves: thin lines are training loss, thick ones with marks validation loss. The"
    " models predict different things, so their losses do not compare with each other."
)

KINDS = ("perplexity", "two-way perplexity", PSEUDO_KIND)
MARGIN = 1.08  # times the perplexities at the ends of an axis
LABELS = 0.58  # where labels stand, in parts of an axis
CAPTION = (
    "after rescoring with one language model, over the word perplexity that it gives to the"
    " references; bars are 95% bootstrap intervals, the dashed line is the first pass. Kinds of"
    " perplexity do not compare, so each has a panel."
)


def legible(names: Iterable[str], worse: Mapping[str, float], most: int) -> tuple[list[str], str]:
    """Return those of `names` that a figure of at most `most` lines shows, in their order: the
    first pass, the oracle and the best, by what is lowest in `worse`; and a sentence on them.
    """
    names = list(names)
    if len(names) <= most:
        return names, ""
    best = sorted(names, key=lambda name: (name not in (FIRST, ORACLE), worse.get(name, np.inf)))
    shown = [name for name in names if name in best[:most]]
    return shown, f" The best of {len(names)} are shown; the tables have all."


def rank(experiment: Experiment, measured: Measured) -> dict[str, float]:
    """Return a figure of each system on a set, of which the lowest is the best."""
    return {name: experiment.lists.sign * r.score for name, r in measured.results.items()}


def draw_first(draw, theme: Theme, look: Look, score: float) -> None:
    """Draw the dashed line of the first pass by axhline or axvline."""
    draw(score, color=theme.color(look), linestyle="--", linewidth=1)


def system_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield the score of every system with its 95% interval."""
    label = experiment.lists.metric_label
    for measured in experiment.lists.judged:
        place, results = measured.sample.name, measured.results
        names, missing = legible(results, rank(experiment, measured), ROWS)
        scores = [f"{experiment.names.label(n)} {results[n].score:.2f}" for n in names]
        yield Picture(
            f"systems-{place}",
            f"{label} on {place} with 95% bootstrap intervals; the dashed line is the first"
            f" pass.{missing}",
            f"{label} on {place}: {', '.join(scores)}.",
            partial(draw_systems, experiment, measured, names),
        )


def draw_systems(
    experiment: Experiment, measured: Measured, names: Sequence[str], theme: Theme
) -> Figure:
    lists, place = experiment.lists, measured.sample.name
    figure, axes = chart((6.6, 0.9 + 0.34 * len(names)), f"{lists.metric_label} on {place}", "")
    styles = experiment.names.looks(list(measured.results))
    for y, name in enumerate(names):
        row = experiment.rows.find("system", name, lists.metric, place)
        bar = {"color": theme.color(styles[name]), "linewidth": 3, "alpha": 0.45}
        axes.plot([row.low, row.high], [y, y], solid_capstyle="butt", **bar)
        axes.plot([row.value], [y], linestyle="none", **marked(theme, styles[name], 8, 8))
        write_right_of(axes, (row.high or row.value, y), f"{row.value:.2f}")
    draw_first(axes.axvline, theme, styles[FIRST], measured.results[FIRST].score)
    axes.set_yticks(range(len(names)), [*map(experiment.names.label, names)])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.margins(x=0.12)
    return figure


def depth_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield the score by list depth, oracle included."""
    label = experiment.lists.metric_label
    for measured in experiment.lists.judged:
        if len(measured.oracle) > 1:
            place = measured.sample.name
            names, missing = legible(measured.by_depth, rank(experiment, measured), LINES - 1)
            reached = [f"{depth}: {measured.oracle[depth - 1]:.2f}" for depth in measured.depths]
            yield Picture(
                f"depth-{place}",
                f"{label} on {place} {DEPTH}{missing}",
                f"Oracle {label} by list depth: {', '.join(reached)}.",
                partial(draw_depth, experiment, measured, names),
            )


def draw_depth(
    experiment: Experiment, measured: Measured, names: Sequence[str], theme: Theme
) -> Figure:
    """Draw a line a system over list depth."""
    label, depths = experiment.names.label, measured.depths
    y = f"{experiment.lists.metric_label} on {measured.sample.name}"
    figure, axes = chart((6.6, 4), "list depth (hypotheses an utterance)", y)
    styles = experiment.names.looks(list(measured.results))
    draw_first(axes.axhline, theme, styles[FIRST], measured.results[FIRST].score)
    every = np.arange(1, len(measured.oracle) + 1)
    line(axes, theme, styles[ORACLE], label(ORACLE), x=every, y=measured.oracle, marker="")
    for name in names:
        line(axes, theme, styles[name], label(name), x=depths, y=measured.by_depth[name])
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(depths))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda depth, _: f"{depth:.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    beside(axes)
    return figure


def length_pictures(experiment: Experiment) -> Iterator[Picture]:
    label = experiment.lists.metric_label
    for measured in experiment.lists.judged:
        names, missing = legible(measured.results, rank(experiment, measured), LINES)
        yield Picture(
            f"length-{measured.sample.name}",
            f"{label} on {measured.sample.name} by number of reference words; in parentheses the"
            f" number of utterances.{missing}",
            f"{label} by utterance length; the table of the same name has the figures.",
            partial(draw_length, experiment, measured, names),
        )


def draw_length(
    experiment: Experiment, measured: Measured, names: Sequence[str], theme: Theme
) -> Figure:
    """Draw a line a system over classes of lengths."""
    y = f"{experiment.lists.metric_label} on {measured.sample.name}"
    figure, axes = chart((6.6, 4), "reference words (utterances)", y)
    styles = experiment.names.looks(list(measured.results))
    counts = [int(members.sum()) for members in length_classes(measured.lengths)]
    scores = {name: measured.by_length(name) for name in names}
    shown = [i for i in range(len(LENGTHS)) if scores[FIRST][i] is not None]
    for name, values in scores.items():
        values = [values[i] for i in shown]
        line(axes, theme, styles[name], experiment.names.label(name), x=range(len(shown)), y=values)
    axes.set_xticks(range(len(shown)), [f"{span(LENGTHS[i])}\n({counts[i]})" for i in shown])
    axes.set_ylim(bottom=0)
    beside(axes)
    return figure


def scale_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield the score on the tuning set over the scale of the language model: a system's own LM, or
    the only scale that it has; of interpolations, whose scale is another, where there is nothing
    else.
    """
    systems, known = experiment.lists.systems, {}
    makeups = {name: system.makeup for name, system in systems.items()}
    mixed = len({makeup.interpolated for makeup in makeups.values() if makeup.parts}) > 1
    names = [n for n, m in makeups.items() if m.normalised and not (mixed and m.interpolated)]
    for name in names:
        weights = systems[name].weights
        curves = (weights.search.get("curves") or {}) if weights else {}
        only = next(iter(curves.values())) if len(curves) == 1 else None
        if curve := curves.get(feature(makeups[name])) or only:
            known[name] = curve
    worse = {name: experiment.lists.sign * systems[name].weights.dev.score for name in known}
    shown, missing = legible(known, worse, LINES)
    curves = {name: known[name] for name in shown}
    # of weights without the first pass's scale only parts of the totals compare
    parts = any("unit" in systems[name].weights.search for name in curves)
    if parts:
        curves = {name: scale_by(curve, curve.get("part", 1.0)) for name, curve in curves.items()}
    if curves:
        flat = "; ".join(
            f"{experiment.names.label(name)} {curve['flat'][0]:.3g} to {curve['flat'][1]:.3g}"
            for name, curve in curves.items()
        )
        weights = systems[next(iter(curves))].weights
        yield Picture(
            "scale",
            f"{experiment.lists.metric_label} {SCALE}{missing}",
            f"Flat regions of the scale: {flat}.",
            partial(draw_scale, experiment, curves, weights, parts=parts),
        )


def scale_by(curve: Mapping, part: float) -> dict:
    """Return a curve over the scale times `part`."""
    times = {"points": [part, 1], "flat": part, "chosen": part}
    return {name: np.multiply(curve[name], factor).tolist() for name, factor in times.items()}


def feature(system: SystemParts) -> str | None:
    """Return the feature of a system's only language model: `tta/token` of T-TA's mean."""
    if len(system.parts) != 1:
        return None
    (part,) = system.parts
    return part.lm if part.score == SUM else f"{part.lm}/{part.score}"


def draw_scale(
    experiment: Experiment, curves: Mapping, weights: Weights, theme: Theme, *, parts: bool
) -> Figure:
    """Draw steps over scales, or `parts`, a mark at the chosen one and a bar of its flat region."""
    x = "scale of the language model (first pass: 1)"
    x = "spread by the language model (by all else: 1)" if parts else x
    x = "lambda, the language model's share" if weights.search.get("form") == INTERPOLATION else x
    figure, axes = chart((6.6, 4.2), x, f"{experiment.lists.metric_label} on the tuning set")
    styles, first = experiment.names.looks(curves), weights.dev.first_pass
    draw_first(axes.axhline, theme, styles[FIRST], first)
    for place, (name, curve) in enumerate(curves.items()):
        scales, scores = np.array(curve["points"]).T
        look, chosen, color = styles[name], curve["chosen"], theme.color(styles[name])
        thin = {"linestyle": look.line if look.hollow else "-", "linewidth": 1.3}
        axes.step(scales, scores, where="post", color=color, **thin)
        below = axes.get_xaxis_transform()  # x in scales, y in parts of the axes' height
        bar = {"linewidth": 5, "solid_capstyle": "butt", "marker": "|", "markersize": 9}
        axes.plot(curve["flat"], [0.03 + 0.04 * place] * 2, transform=below, color=color, **bar)
        marks = {"markeredgecolor": color if look.hollow else theme.paper}
        marks |= {"label": experiment.names.label(name), **marked(theme, look, 8, 11)}
        axes.plot([chosen], held(scales, scores, [chosen]), **marks)
    frame(axes, curves, first)
    beside(axes)
    return figure


def frame(axes, curves: Mapping, first: float) -> None:
    """Set limits that show the best scales and what is not far worse than the first pass, and room
    below for bars; a logarithmic axis for scales of other orders.
    """
    points = np.concatenate([np.array(curve["points"]) for curve in curves.values()])
    best = [float(held(*np.array(curve["points"]).T, curve["chosen"])) for curve in curves.values()]
    low, high = min(first, *best), max(first, *best)
    width = (high - low) or 1.0
    below, above = (0.1, 0.4) if first >= np.mean(best) else (0.4, 0.1)
    low, high = low - below * width, high + above * width
    room = 0.05 + 0.04 * len(curves)
    axes.set_ylim(low - room / (1 - room) * (high - low), high)
    inside = points[(points[:, 1] >= low) & (points[:, 1] <= high), 0]
    chosen = [curve["chosen"] for curve in curves.values()]
    if min(chosen) > 0 and max(chosen) > 10 * min(chosen):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlim(min(chosen) / 10, inside.max() * 1.2)
    else:
        margin = 0.03 * (np.ptp(inside) or 1.0)
        axes.set_xlim(inside.min() - margin, inside.max() + margin)


def held(scales: np.ndarray, scores: np.ndarray, at) -> np.ndarray:
    """Return the score at each scale of `at`: a point's score holds up to the next point."""
    return scores[np.maximum(np.searchsorted(scales, at, side="right") - 1, 0)]


def learning_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield training and validation loss over tokens."""
    every, names = experiment.learning, experiment.names.lms
    shown, missing = legible(every, {name: i for i, name in enumerate(every)}, LINES)
    if curves := {name: every[name] for name in shown}:
        ends = ", ".join(
            f"{names.label(lm)} {losses[-1][1]:.2f}"
            for lm, lines in curves.items()
            if (losses := validation(lines))
        )
        yield Picture(
            "learning",
            f"{LEARNING}{missing}",
            f"Validation loss at the end, in nats a token: {ends}.",
            partial(draw_learning, names, curves),
        )


def validation(lines: Sequence[dict]) -> list[tuple[float, float]]:
    """Return pairs (tokens, validation loss), tokens interpolated from the training's own lines."""
    known = [(line["step"], line["tokens"]) for line in lines if "tokens" in line] or [(0, 0)]
    steps, tokens = zip(*known, strict=True)
    return [
        (float(np.interp(line["step"], steps, tokens)), line["valid_loss"])
        for line in lines
        if "valid_loss" in line
    ]


def draw_learning(names: Names, curves: Mapping, theme: Theme) -> Figure:
    """Draw a thin and a thick line a language model."""
    figure, axes = chart((6.6, 4), "training tokens (millions)", "loss (nats a token)")
    styles = names.looks(curves)
    for lm, lines in curves.items():
        trained = [entry for entry in lines if "train_loss" in entry and "tokens" in entry]
        points = [(entry["tokens"] / 1e6, entry["train_loss"]) for entry in trained]
        thin = {"color": theme.color(styles[lm]), "linewidth": 0.8, "alpha": 0.55}
        axes.plot(*np.array(points).reshape(-1, 2).T, **thin)
        if held_out := validation(lines):
            tokens, losses = zip(*held_out, strict=True)
            line(axes, theme, styles[lm], names.label(lm), x=np.array(tokens) / 1e6, y=losses)
    beside(axes)
    return figure


def ppl_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield for each judged set scores over perplexities, a point a language model alone."""
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
    """Return perplexity and row of score of language models alone, by kind of perplexity."""
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
