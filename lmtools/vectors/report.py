"""The part of semantic textual similarity in a report: tables in the shape of Tables 3 and 4 of the
T-TA paper, layers, grades, and what the same language models gain on lists; figures of correlations
with intervals, and of cosines against similarity.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lmtools.evaluate.metrics import METRICS
from lmtools.report.drawing import Picture, Theme
from lmtools.report.experiment import Experiment
from lmtools.report.lms import list_trainings
from lmtools.report.measure import Measured, is_tuned_first_pass
from lmtools.report.style import FIRST, SUM, Look, SystemParts
from lmtools.report.table import (
    Column,
    Query,
    Table,
    decimal,
    figures,
    probability,
    show_interval,
    table_of,
)
from lmtools.vectors.judged import MASKED, REFERENCE, Judged, JudgedPairs

MINI = "mini"  # the corpus whose similarity no one judged: it follows from how its pairs were made
WHAT = (
    "context: the last layer's vectors; embed: the embedding layer's. A sentence's vector is the"
    " mean over its tokens, without the boundaries [CLS] and [EOS] or [SEP], of an intact input"
    " unless the row says otherwise; similarity is the cosine of two of them."
)
CONSTRUCTED = (
    "The similarity of this corpus is constructed: it follows from how the pairs were made, and"
    " nobody judged it. The figures show that the recipe works; they do not compare with those of"
    " judged corpora."
)
LAYERS = (
    "embed is the embedding layer, the highest number of a system its context; bold is the best"
    " layer of each system."
)
GRADES = (
    "Columns are grades of similarity, in parentheses the number of pairs; cosines are of"
    " contexts, of static vectors of embeds."
)
PANELS, WIDE = 9, 3  # small multiples of one figure: how many, and how many side by side
PARTS = {"context": 1.0, "embed": 0.45}  # how opaque the bar of each is
BARS = (
    "a panel a set: full bars are contexts (last layer), pale ones embedding layers; lines are 95%"
    " intervals."
)
BOXES = "boxes are quartiles, whiskers the 5th and 95th percentile, marks means"
SCATTER = "a point is a pair, the line the regression"


def similarity_tables(experiment: Experiment) -> Iterator[Table]:
    first = pearson_tables, gain_tables, main_tables
    for make in (*first, layer_tables, grade_tables):
        yield from make(experiment)
    models = experiment.models.items()
    trained = {experiment.names.short(name): model for name, model in models if model.lines}
    yield from list_trainings(experiment, trained)


def is_constructed(experiment: Experiment) -> bool:
    return Path(experiment.corpus or "").name == MINI


def name_judges(experiment: Experiment) -> str:
    constructed = is_constructed(experiment)
    return "constructed similarity" if constructed else "similarity as people judged it"


def describe_corpus(experiment: Experiment) -> str:
    return experiment.title + ", constructed similarity" * is_constructed(experiment)


def pearson_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield Pearson x100 of each system on each set (Tables 3 and 4 of the T-TA paper)."""
    pairs, notes = experiment.pairs, [WHAT]
    if REFERENCE in pairs.on(pairs.test):
        notes.append(
            f"The interval and p are of the context on {pairs.test}, of static vectors the"
            f" embed. p: two-sided, that a system is as good as {pairs.labels[REFERENCE]}'s"
            " context, by Williams' test of dependent correlations (Williams 1959, Steiger 1980)."
        )
    yield from main_tables(experiment, "Pearson", notes, tested=len(notes) > 1)


def main_tables(
    experiment: Experiment,
    kind: str = "Spearman",
    notes: Sequence[str] = (WHAT,),
    tested: bool = False,
) -> Iterator[Table]:
    """Yield Pearson or Spearman x100: context and embed on each set; behind the last set's the 95%
    interval of what a system stands for and, if it was `tested`, the probability of its difference
    to T-TA's context.
    """
    pairs, systems = experiment.pairs, list(experiment.pairs.ways)
    if not systems:
        return
    columns = [Column("system", list(pairs.labels.values()))]
    for name in pairs.sets:
        judged = pairs.on(name)
        for part in ("context", "embed"):
            values = [
                judged[system].hundredfold(part, kind.lower()) if system in judged else None
                for system in systems
            ]
            columns.append(figures(f"{name} {part}", values, sign=-1))
    judged = pairs.on(pairs.test)
    numbers = [judged[name].best.number if name in judged else None for name in systems]
    rows = [
        experiment.rows.find("vectors", name, kind.lower(), pairs.test, at=number)
        for name, number in zip(systems, numbers, strict=True)
    ]
    if judged:
        columns.append(Column(f"{pairs.test} 95%", [show_interval(row, " to ") for row in rows]))
    if tested:
        columns.append(Column("p", [probability(row.p if row else None) for row in rows]))
    first = f"{kind}'s correlation, times 100, of cosine and {name_judges(experiment)}; bold is"
    made = [CONSTRUCTED] * is_constructed(experiment)
    stated = [f"{first} the best.", *made, *notes]
    title = f"Semantic textual similarity, {kind} x100: {describe_corpus(experiment)}"
    yield table_of(title, columns, stated, part="results")


def layer_tables(experiment: Experiment) -> Iterator[Table]:
    pairs = experiment.pairs
    layered = pairs.deep
    if not layered:
        return
    values = {system: judged.pearsons for system, judged in layered.items()}
    tops = [  # the layer with the highest of the values that are numbers
        max(
            (n for n, value in column.items() if not math.isnan(value)),
            key=column.get,
            default=None,
        )
        for column in values.values()
    ]
    query = Query(experiment.rows, "vectors", list(layered))
    columns = [Column("system", [pairs.labels[system] for system in layered])]
    for number in sorted({number for by_number in values.values() for number in by_number}):
        cells = query.column("", "pearson", pairs.test, at=number).cells
        best = frozenset(i for i, top in enumerate(tops) if number == top)
        columns.append(Column(f"layer {number}" if number else "embed", cells, best))
    title = f"Pearson x100 by layer on {pairs.test}: {describe_corpus(experiment)}"
    yield table_of(
        title, columns, (LAYERS, *[CONSTRUCTED] * is_constructed(experiment)), part="results"
    )


def grade_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield the mean cosine by grade of similarity, for sets whose similarity takes few values."""
    pairs = experiment.pairs
    for name in filter(pairs.graded, pairs.sets):
        query = Query(experiment.rows, "grade", list(pairs.on(name)))
        columns = [Column("system", [pairs.labels[system] for system in query.names])]
        for grade, count in zip(*np.unique(pairs.gold(name), return_counts=True), strict=True):
            header = f"{grade:g} ({count:,})"
            columns.append(query.column(header, "cosine", name, digits=3, at=grade))
        title = f"Mean cosine by similarity on {name}: {describe_corpus(experiment)}"
        yield table_of(
            title, columns, (GRADES, *[CONSTRUCTED] * is_constructed(experiment)), part="results"
        )


class Gain(NamedTuple):
    """One language model: Pearson's correlations (x100) of its context, of its embedding layer
    (None where it has none) and of its best vectors, which `layer` of system `vectors` are, on the
    last set of pairs; the score of the system that adds it to the first pass, what that gains, and
    the probability that what it gains beyond the tuned first pass is chance.
    """

    lm: str
    context: float | None
    embed: float | None
    best: float
    vectors: str
    layer: int
    score: float
    gain: float
    p: float | None


def measure_gains(experiment: Experiment, measured: Measured) -> list[Gain]:
    """Return what each language model with vectors gains on a set of lists, in printing order."""
    pairs, systems, gains = experiment.pairs, experiment.lists.systems, []
    alone = {
        system.makeup.parts[0].lm: measured.results[name]
        for name, system in systems.items()
        if name in measured.results and is_alone(system.makeup)
    }
    judged, first = pairs.on(pairs.test), measured.results[FIRST].score
    for lm in dict.fromkeys(pairs.ways[name].lm for name in judged):
        if result := alone.get(lm):
            best = max(
                (value, name, layer)
                for name in judged
                if pairs.ways[name].lm == lm
                for layer, value in judged[name].pearsons.items()
            )
            plain = judged.get(lm)
            parts = (plain and plain.hundredfold(part) for part in ("context", "embed"))
            gain = experiment.lists.sign * (first - result.score)
            gains.append(Gain(lm, *parts, *best, result.score, gain, result.beyond))
    return gains


def is_alone(makeup: SystemParts) -> bool:
    """Return whether a system adds one language model's log-probability to the first pass."""
    whole = len(makeup.parts) == 1 and makeup.parts[0].score == SUM
    return whole and makeup.normalised and not makeup.lattices and not makeup.interpolated


def gain_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield similarity and reranking side by side, a language model a row, for each set."""
    test, lists, label = experiment.pairs.test, experiment.lists, experiment.label
    for measured in lists.judged if lists else ():
        if not (gains := measure_gains(experiment, measured)):
            continue
        which = [f"{label(g.vectors)}, {f'layer {g.layer}' if g.layer else 'embed'}" for g in gains]
        columns = [
            Column("LM", [experiment.names.short(gain.lm) for gain in gains]),
            figures(f"{test} context", [gain.context for gain in gains], sign=-1),
            figures(f"{test} embed", [gain.embed for gain in gains], sign=-1),
            figures(f"{test} best layer", [gain.best for gain in gains], sign=-1),
            Column("which", which),
            figures(lists.metric_label, [gain.score for gain in gains], sign=lists.sign),
            figures("gain", [gain.gain for gain in gains], sign=-1),
            Column("p", [probability(gain.p) for gain in gains]),
        ]
        metric, results = METRICS[measured.refs.metric], measured.results
        first = f"{metric.title} {results[FIRST].score:.2f}"
        for name, system in lists.systems.items():
            if is_tuned_first_pass(system) and name in results:
                first += f", with tuned weights {results[name].score:.2f}"
        note = (
            f"Pearson x100 on {test} of the vectors of a language model; {metric.title} on lists of"
            f" {measured.sample.size}, where its log-probability is added to the first pass's"
            f" scores. The first pass has {first}; gains are in points over the first figure. p:"
            " that what an LM gains beyond the tuned first pass is chance."
        )
        title = f"Similarity against reranking: {describe_corpus(experiment)}"
        notes = note, f"Metric: `{metric.signature}`."
        yield table_of(title, columns, notes, part="results")


def bar_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield Pearson of context and embed of each system with 95% intervals, one panel a set."""
    pairs = experiment.pairs
    if pairs.ways:
        results = "; ".join(f"{name}: {describe_results(pairs, name)}" for name in pairs.sets)
        yield Picture(
            "bars",
            f"Pearson's correlation (x100) of cosine and {name_judges(experiment)}, {BARS}",
            f"Pearson x100 of contexts, of static vectors of embeddings. {results}.",
            partial(draw_bars, pairs),
            wide=True,
        )


def describe_results(pairs: JudgedPairs, name: str) -> str:
    return ", ".join(
        f"{pairs.labels[system]} {decimal(judged.hundredfold('best'), 1)}"
        for system, judged in pairs.on(name).items()
    )


def draw_bars(pairs: JudgedPairs, theme: Theme) -> Figure:
    systems, sets = list(pairs.ways), pairs.sets
    figure = Figure((2.2 + 4.2 * max(len(sets), 2), 1.1 + 0.48 * len(systems)))
    panels = figure.subplots(1, len(sets), sharex=True, sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, sets, strict=True):
        judged = pairs.on(name)
        for y, system in enumerate(systems):
            if system in judged:
                draw_bars_of(axes, theme, judged[system], pairs.looks[system], y=y)
        axes.set_title(name)
        axes.set_xlabel("Pearson x100")
        axes.grid(axis="y", visible=False)
        axes.axvline(0, color=theme.ink, linewidth=0.8)
        axes.margins(x=0.12)
    axes.set_yticks(range(len(systems)), [pairs.labels[system] for system in systems])
    axes.set_ylim(len(systems) - 0.4, -0.6)
    return figure


def draw_bars_of(axes, theme: Theme, judged: Judged, look: Look, y: int) -> None:
    """Draw the bars of one system, one under the other; a single one in the middle."""
    layers = {part: getattr(judged, part) for part in PARTS}
    parts = {
        part: [100 * number for number in layer.correlations["pearson"]]
        for part, layer in layers.items()
        if layer and math.isfinite(layer.correlations["pearson"][0])
    }
    height = 0.38
    for i, (part, (value, low, high)) in enumerate(parts.items()):
        at = y + height * (i - (len(parts) - 1) / 2)
        axes.barh(at, value, height=0.92 * height, color=theme.color(look), alpha=PARTS[part])
        # a rim of paper, so that it is seen on every bar
        for color, width in ((theme.paper, 3), (theme.ink, 1.2)):
            axes.plot([low, high], [at, at], color=color, linewidth=width, solid_capstyle="butt")
        end = max(value, high, 0) if math.isfinite(high) else max(value, 0)
        place = {"textcoords": "offset points", "va": "center", "fontsize": 8.5}
        axes.annotate(f"{value:.1f}", (end, at), (4, 0), **place)


def scatter_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield cosine against similarity on the last set, one panel a system."""
    pairs, name = experiment.pairs, experiment.pairs.test
    shown = choose_panels(pairs, pairs.on(name))
    if not shown:
        return
    missing = [pairs.labels[system] for system in pairs.on(name) if system not in shown]
    left = f" Without a panel, but in the tables: {', '.join(missing)}." if missing else ""
    yield Picture(
        f"scatter-{name}",
        f"Cosine of two sentences' vectors against {name_judges(experiment)} on {name}"
        " (context of each system, of static vectors the embedding);"
        f" {BOXES if pairs.graded(name) else SCATTER}; r is Pearson's"
        f" correlation. Each panel has its own scale of cosines, on which r does not depend.{left}",
        f"Cosine against similarity; Pearson x100 on {name}: {describe_results(pairs, name)}.",
        partial(draw_scatter, pairs, shown),
        wide=True,
    )


def choose_panels(pairs: JudgedPairs, judged: Mapping[str, Judged]) -> list[str]:
    """Return the systems with a panel: all, or of too many those plain, masked or static."""
    systems = list(judged)
    if len(systems) > PANELS:
        systems = [system for system in systems if pairs.ways[system].views in ((), (MASKED,))]
    # static vectors give way
    kept = sorted(systems, key=lambda system: judged[system].context is None)[:PANELS]
    return [system for system in systems if system in kept]


def draw_scatter(pairs: JudgedPairs, systems: Sequence[str], theme: Theme) -> Figure:
    columns = min(WIDE, len(systems))
    rows = math.ceil(len(systems) / columns)
    figure = Figure((1 + 3.3 * columns, 0.3 + 2.7 * rows))
    panels = figure.subplots(rows, columns, sharex=True, squeeze=False)
    judged, draw = pairs.on(pairs.test), boxes if pairs.graded(pairs.test) else points
    for axes, system in zip(panels.flat, systems, strict=False):
        layer = judged[system].best
        draw(axes, theme, pairs.looks[system], judged[system].gold, cosines=layer.cosines)
        r = decimal(layer.correlations["pearson"][0])
        axes.set_title(f"{pairs.labels[system]}  r = {r}")
        axes.yaxis.set_major_locator(MaxNLocator(5))
    for axes in panels.flat[len(systems) :]:
        axes.remove()
    for axes in panels.flat[: len(systems)]:
        axes.set_xlabel("similarity")
        axes.tick_params(labelbottom=True)
    for axes in panels[:, 0]:
        axes.set_ylabel("cosine")
    return figure


def points(axes, theme: Theme, look: Look, gold: np.ndarray, cosines: np.ndarray) -> None:
    strength = float(np.clip(8 / math.sqrt(len(gold)), 0.15, 0.8))
    marks = {"linestyle": "none", "marker": "o", "markersize": 2.6, "markeredgewidth": 0}
    axes.plot(gold, cosines, color=theme.color(look), alpha=strength, **marks)
    if np.ptp(gold):
        slope, start = np.polyfit(gold, cosines, 1)
        ends = np.array([gold.min(), gold.max()])
        axes.plot(ends, slope * ends + start, color=theme.ink, linewidth=1.2)


def boxes(axes, theme: Theme, look: Look, gold: np.ndarray, cosines: np.ndarray) -> None:
    grades = np.unique(gold)
    color, width = theme.color(look), 0.5 * float(np.diff(grades).min()) if len(grades) > 1 else 0.5
    columns = [cosines[gold == grade] for grade in grades]
    style = {"showfliers": False, "manage_ticks": False, "patch_artist": True, "whis": (5, 95)}
    parts = axes.boxplot(columns, positions=grades, widths=width, **style)
    for line in (line for name in ("boxes", "whiskers", "caps", "medians") for line in parts[name]):
        line.set_color(theme.ink if line in parts["medians"] else color)
    for box in parts["boxes"]:
        box.set(facecolor=color, alpha=0.45)
    means = [column.mean() for column in columns]
    axes.plot(grades, means, color=color, linewidth=1, marker="o", markersize=3)
    axes.set_xticks(grades, [f"{grade:g}" for grade in grades])
    axes.set_xlim(grades[0] - width, grades[-1] + width)
