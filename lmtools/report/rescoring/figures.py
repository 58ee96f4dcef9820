"""The figures of an experiment, for light and for dark paper; every system has one colour, marker
and line in all of them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from lmtools.report.names import CE, FIRST, ORACLE, SUM, Names, SystemParts
from lmtools.report.page.drawing import Picture, Theme, beside, line, marked, write_right_of
from lmtools.report.papers.run_times import speed_pictures
from lmtools.report.rescoring.criteria.figures import criteria_pictures
from lmtools.report.rescoring.experiment import RescoringExperiment
from lmtools.report.rescoring.measure import LENGTHS, Measured, length_classes
from lmtools.report.rescoring.tables import span
from lmtools.rescoring.tuning import FLAT

LINES, ROWS = 12, 30  # that one figure can hold


def legible(experiment: RescoringExperiment, names: Iterable[str], most: int = LINES) -> list[str]:
    """Return those of the systems or language models `names` that a figure shows: all, or, where
    they are more than `most`, those that LEFT_OUT does not name.
    """
    names = list(names)
    if len(names) <= most:
        return names
    return [
        name
        for name in names
        if not any(leaves_out(experiment, name) for leaves_out in LEFT_OUT.values())
    ]


def other_criterion(experiment: RescoringExperiment, name: str) -> bool:
    """Return whether a language model of a system was trained by another criterion than the
    softmax.
    """
    return any(
        experiment.configs.get(part.lm, {}).get("criterion", CE) != CE
        for part in experiment.names.makeup(name).parts
    )


LEFT_OUT = {  # what a figure of many lines lacks, and why
    "language models trained by other criteria than the softmax have tables and figures of their"
    " own": other_criterion,
    "means over tokens are in the tables": lambda experiment, name: experiment.names.is_mean(name),
    "interpolations with the first pass are in the tables": lambda experiment, name: (
        experiment.names.makeup(name).interpolated
    ),
}


def system_pictures(experiment: RescoringExperiment) -> Iterator[Picture]:
    """Yield the score of every system with its 95% interval."""
    for measured in experiment.judged:
        names = legible(experiment, measured.results, ROWS)
        scores = ", ".join(
            f"{experiment.names.label(name)} {measured.results[name].score:.2f}" for name in names
        )
        yield Picture(
            f"systems-{measured.sample.name}",
            f"{experiment.metric_label} on {measured.sample.name} with 95% bootstrap intervals; the"
            f" dashed line is the first pass.{left_out(experiment, measured.results, ROWS)}",
            f"{experiment.metric_label} on {measured.sample.name}: {scores}.",
            lambda theme, measured=measured, names=names: draw_systems(
                theme, experiment, measured, names
            ),
        )


def draw_systems(
    theme: Theme, experiment: RescoringExperiment, measured: Measured, names: Sequence[str]
) -> Figure:
    figure = Figure((6.6, 0.9 + 0.34 * len(names)))
    axes = figure.subplots()
    styles = experiment.names.looks(list(measured.results))
    for y, name in enumerate(names):
        result = measured.results[name]
        low, high = result.bootstrap.score_interval
        color = theme.color(styles[name])
        axes.plot([low, high], [y, y], color=color, linewidth=3, alpha=0.45, solid_capstyle="butt")
        axes.plot([result.score], [y], linestyle="none", **marked(theme, styles[name], 8, 8))
        write_right_of(axes, (high, y), f"{result.score:.2f}")
    dashed = {"color": theme.color(styles[FIRST]), "linestyle": "--", "linewidth": 1}
    axes.axvline(measured.results[FIRST].score, **dashed)
    axes.set_yticks(range(len(names)), [*map(experiment.names.label, names)])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.margins(x=0.12)
    axes.set_xlabel(f"{experiment.metric_label} on {measured.sample.name}")
    return figure


def depth_pictures(experiment: RescoringExperiment) -> Iterator[Picture]:
    """Yield the score by list depth, oracle included."""
    for measured in experiment.judged:
        if len(measured.oracle) > 1:
            reached = ", ".join(
                f"{depth}: {measured.oracle[depth - 1]:.2f}" for depth in measured.depths
            )
            yield Picture(
                f"depth-{measured.sample.name}",
                f"{experiment.metric_label} on {measured.sample.name} when only the first"
                " hypotheses of each list are there to choose from, with the weights tuned on whole"
                " lists; the dashed line is the first"
                f" pass.{left_out(experiment, measured.by_depth)}",
                f"Oracle {experiment.metric_label} by list depth: {reached}.",
                lambda theme, measured=measured: draw_depth(
                    theme, experiment, measured, legible(experiment, measured.by_depth)
                ),
            )


def left_out(experiment: RescoringExperiment, names: Iterable[str], most: int = LINES) -> str:
    """Return a caption's last sentence where a figure does not show all of `names`."""
    names = list(names)
    missing = set(names) - set(legible(experiment, names, most))
    said = "; ".join(
        reason
        for reason, leaves_out in LEFT_OUT.items()
        if any(leaves_out(experiment, name) for name in missing)
    )
    return f" {len(missing)} are left out: {said}." if missing else ""


def draw_depth(
    theme: Theme, experiment: RescoringExperiment, measured: Measured, names: Sequence[str]
) -> Figure:
    figure = Figure((6.6, 4))
    axes = figure.subplots()
    styles = experiment.names.looks(list(measured.results))
    dashed = {"color": theme.color(styles[FIRST]), "linestyle": "--", "linewidth": 1}
    axes.axhline(measured.results[FIRST].score, **dashed)
    label, every = experiment.names.label(ORACLE), np.arange(1, len(measured.oracle) + 1)
    line(axes, theme, styles[ORACLE], label, every, measured.oracle, marker="")
    for name in names:
        label = experiment.names.label(name)
        line(axes, theme, styles[name], label, measured.depths, measured.by_depth[name])
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(measured.depths))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda depth, _: f"{depth:.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("list depth (hypotheses an utterance)")
    axes.set_ylabel(f"{experiment.metric_label} on {measured.sample.name}")
    beside(axes)
    return figure


def length_pictures(experiment: RescoringExperiment) -> Iterator[Picture]:
    """Yield the score by utterance length."""
    for measured in experiment.judged:
        yield Picture(
            f"length-{measured.sample.name}",
            f"{experiment.metric_label} on {measured.sample.name} by number of reference words; in"
            f" parentheses the number of utterances.{left_out(experiment, measured.results)}",
            f"{experiment.metric_label} by utterance length; the table of the same name has the"
            " figures.",
            lambda theme, measured=measured: draw_length(
                theme, experiment, measured, legible(experiment, measured.results)
            ),
        )


def draw_length(
    theme: Theme, experiment: RescoringExperiment, measured: Measured, names: Sequence[str]
) -> Figure:
    figure = Figure((6.6, 4))
    axes = figure.subplots()
    styles = experiment.names.looks(list(measured.results))
    counts = [int(members.sum()) for members in length_classes(measured.lengths)]
    scores = {name: measured.by_length(name) for name in names}
    shown = [i for i in range(len(LENGTHS)) if scores[FIRST][i] is not None]
    for name, values in scores.items():
        values = [values[i] for i in shown]
        line(axes, theme, styles[name], experiment.names.label(name), range(len(shown)), values)
    axes.set_xticks(range(len(shown)), [f"{span(LENGTHS[i])}\n({counts[i]})" for i in shown])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("reference words (utterances)")
    axes.set_ylabel(f"{experiment.metric_label} on {measured.sample.name}")
    beside(axes)
    return figure


def scale_pictures(experiment: RescoringExperiment) -> Iterator[Picture]:
    """Yield the score on the tuning set over the scale of the language model: a system's own LM, or
    the only scale that it has; of interpolations, whose scale is another, where there is nothing
    else.
    """
    curves, tuned = {}, {}
    made = {name: system.makeup for name, system in experiment.systems.items()}
    mixed = len({one.interpolated for one in made.values() if one.parts}) > 1
    names = [
        name for name, one in made.items() if one.normalised and not (mixed and one.interpolated)
    ]
    for name in legible(experiment, names):
        system = experiment.systems[name]
        found = (system.weights.search.get("curves") or {}) if system.weights else {}
        if curve := found.get(feature(system.makeup)) or (
            next(iter(found.values())) if len(found) == 1 else None
        ):
            curves[name], tuned[name] = curve, system.weights
    if curves:
        flat = "; ".join(
            f"{experiment.names.label(name)} {curve['flat'][0]:.3g} to {curve['flat'][1]:.3g}"
            for name, curve in curves.items()
        )
        yield Picture(
            "scale",
            f"{experiment.metric_label} on the tuning set over the scale of the language model, the"
            " other weights as tuned. The mark is the chosen scale; the bar of the same colour at"
            f" the bottom is the flat region around it, scales within {FLAT} of the best score. The"
            f" dashed line is the first pass.{left_out(experiment, names)}",
            f"Flat regions of the scale: {flat}.",
            lambda theme: draw_scale(theme, experiment, curves, tuned),
        )


def feature(system: SystemParts) -> str | None:
    """Return the feature of a system's only language model: `tta/token` of T-TA's mean."""
    if len(system.parts) != 1:
        return None
    (part,) = system.parts
    return part.lm if part.score == SUM else f"{part.lm}/{part.score}"


def draw_scale(theme: Theme, experiment: RescoringExperiment, curves, tuned) -> Figure:
    figure = Figure((6.6, 4.2))
    axes = figure.subplots()
    styles = experiment.names.looks(curves)
    first = next(iter(tuned.values())).dev.first_pass
    axes.axhline(first, color=theme.color(styles[FIRST]), linestyle="--", linewidth=1)
    for place, (name, curve) in enumerate(curves.items()):
        scales, scores = np.array(curve["points"]).T
        look, chosen, (low, high) = styles[name], curve["chosen"], curve["flat"]
        thin = {"linestyle": look.line if look.hollow else "-", "linewidth": 1.3}
        axes.step(scales, scores, where="post", color=theme.color(look), **thin)
        below = axes.get_xaxis_transform()  # x in scales, y in parts of the axes' height
        height = 0.03 + 0.04 * place
        bar = {"linewidth": 5, "solid_capstyle": "butt", "marker": "|", "markersize": 9}
        axes.plot([low, high], [height, height], transform=below, color=theme.color(look), **bar)
        marks = {"markeredgecolor": theme.color(look) if look.hollow else theme.paper}
        marks |= {"label": experiment.names.label(name), **marked(theme, look, 8, 11)}
        axes.plot([chosen], held(scales, scores, [chosen]), **marks)
    frame(axes, curves, first)
    form = next(iter(tuned.values())).search.get("form")
    axes.set_xlabel(
        "lambda, the language model's share"
        if form == "interpolation"
        else "scale of the language model (first pass: 1)"
    )
    axes.set_ylabel(f"{experiment.metric_label} on the tuning set")
    beside(axes)
    return figure


def frame(axes, curves, first: float) -> None:
    """Limits that show the best scales and what is not far worse than the first pass, and room
    below for a bar a curve.

    Scales of different orders of magnitude get a logarithmic axis.
    """
    points = np.concatenate([np.array(curve["points"]) for curve in curves.values()])
    best = [float(held(*np.array(curve["points"]).T, curve["chosen"])) for curve in curves.values()]
    low, high = min(first, *best), max(first, *best)
    span = (high - low) or 1.0
    below, above = (0.1, 0.4) if first >= np.mean(best) else (0.4, 0.1)
    low, high = low - below * span, high + above * span
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


def learning_pictures(experiment: RescoringExperiment) -> Iterator[Picture]:
    """Training and validation loss over tokens."""
    every = experiment.learning
    if curves := {name: every[name] for name in legible(experiment, every)}:
        ends = ", ".join(
            f"{experiment.names.lms.label(lm)} {losses[-1][1]:.2f}"
            for lm, lines in curves.items()
            if (losses := validation(lines))
        )
        yield Picture(
            "learning",
            "Learning curves: thin lines are training loss, thick ones with marks validation loss."
            " The models predict different things, so their losses do not compare with each"
            f" other.{left_out(experiment, every)}",
            f"Validation loss at the end, in nats a token: {ends}.",
            lambda theme: draw_learning(theme, experiment.names.lms, curves),
        )


def validation(lines: Sequence[dict]) -> list[tuple[float, float]]:
    """Return pairs (tokens, validation loss); the tokens at a step are interpolated from the
    training's own lines.
    """
    known = [(line["step"], line["tokens"]) for line in lines if "tokens" in line] or [(0, 0)]
    steps, tokens = zip(*known, strict=True)
    return [
        (float(np.interp(line["step"], steps, tokens)), line["valid_loss"])
        for line in lines
        if "valid_loss" in line
    ]


def draw_learning(theme: Theme, names: Names, curves) -> Figure:
    figure = Figure((6.6, 4))
    axes = figure.subplots()
    styles = names.looks(curves)
    for lm, lines in curves.items():
        points = [
            (one["tokens"] / 1e6, one["train_loss"])
            for one in lines
            if "train_loss" in one and "tokens" in one
        ]
        thin = {"color": theme.color(styles[lm]), "linewidth": 0.8, "alpha": 0.55}
        axes.plot(*np.array(points).reshape(-1, 2).T, **thin)
        if held_out := validation(lines):
            tokens, losses = zip(*held_out, strict=True)
            line(axes, theme, styles[lm], names.label(lm), np.array(tokens) / 1e6, losses)
    axes.set_xlabel("training tokens (millions)")
    axes.set_ylabel("loss (nats a token)")
    beside(axes)
    return figure


PICTURES: dict[str, Callable[[RescoringExperiment], Iterator[Picture]]] = {
    "criteria": criteria_pictures,
    "systems": system_pictures,
    "depth": depth_pictures,
    "length": length_pictures,
    "scale": scale_pictures,
    "learning": learning_pictures,
    "speed": speed_pictures,
}
