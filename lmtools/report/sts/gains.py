"""Similarity against reranking: how far the vectors of a language model agree with judgements, and
what its scores gain on N-best lists.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from lmtools.evaluate import METRICS
from lmtools.report.names import FIRST, SUM, SystemParts
from lmtools.report.page.columns import NONE, Column, figures, probability, table_of
from lmtools.report.page.drawing import Picture, Theme, marked, write_right_of
from lmtools.report.page.table import Table
from lmtools.report.rescoring.experiment import size
from lmtools.report.rescoring.measure import Measured, is_tuned_first_pass
from lmtools.report.sts.experiment import StsExperiment

POINTS = 3  # of a figure that shows more than the table


@dataclass(frozen=True)
class Gain:
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


def measure_gains(experiment: StsExperiment, measured: Measured) -> list[Gain]:
    """Return what each language model with vectors gains on a set of lists, in printing order."""
    alone = {
        system.makeup.parts[0].lm: name
        for name, system in experiment.rescoring.systems.items()
        if name in measured.results and is_alone(system.makeup)
    }
    vectors: dict[str, list[str]] = {}
    for name in experiment.on(experiment.test):
        vectors.setdefault(experiment.ways[name].lm, []).append(name)
    return [
        measure_gain(experiment, measured, lm, alone[lm], names)
        for lm, names in vectors.items()
        if lm in alone
    ]


def is_alone(makeup: SystemParts) -> bool:
    """Return whether a system adds one language model's log-probability to the first pass."""
    whole = len(makeup.parts) == 1 and makeup.parts[0].score == SUM
    return whole and makeup.normalised and not makeup.lattices and not makeup.interpolated


def measure_gain(
    experiment: StsExperiment, measured: Measured, lm: str, system: str, vectors: Sequence[str]
) -> Gain:
    """Return the figures of a language model with these systems of vectors."""
    judged = experiment.on(experiment.test)
    best, name, layer = max(
        (100 * layer.correlations["pearson"][0], name, layer.number)
        for name in vectors
        for layer in judged[name].layers
    )
    context, embed = (
        experiment.quantity(kind, lm, experiment.test) for kind in ("context", "embed")
    )
    result = measured.results[system]
    better = 1 if METRICS[measured.metric].lower_is_better else -1
    gain = better * (measured.results[FIRST].score - result.score)
    return Gain(lm, context, embed, best, name, layer, result.score, gain, result.beyond)


def gain_tables(experiment: StsExperiment) -> Iterator[Table]:
    """Similarity and reranking side by side, a language model a row, for each set of lists."""
    for measured in experiment.rescoring.judged if experiment.rescoring else ():
        if gains := measure_gains(experiment, measured):
            yield gain_table(experiment, measured, gains)


def gain_table(experiment: StsExperiment, measured: Measured, gains: Sequence[Gain]) -> Table:
    """Return the table of one set of lists."""
    test, metric = experiment.test, experiment.rescoring.metric_label
    lower = METRICS[measured.metric].lower_is_better
    columns = [
        figures(f"{test} context", [one.context for one in gains], sign=-1),
        figures(f"{test} embed", [one.embed for one in gains], sign=-1),
        figures(f"{test} best layer", [one.best for one in gains], sign=-1),
        Column("which", [describe_vectors(experiment, one) for one in gains]),
        figures(metric, [one.score for one in gains], sign=1 if lower else -1),
        figures("gain", [one.gain for one in gains], sign=-1),
        Column("p", [NONE if one.p is None else probability(one.p) for one in gains]),
    ]
    title = f"Similarity against reranking: {experiment.of_what}"
    names = [experiment.names.short(one.lm) for one in gains]
    return table_of(
        title, "LM", names, columns, list(describe_gains(experiment, measured)), "results"
    )


def describe_vectors(experiment: StsExperiment, gain: Gain) -> str:
    """Return the printed name of a language model's best vectors."""
    return f"{experiment.label(gain.vectors)}, {f'layer {gain.layer}' if gain.layer else 'embed'}"


def describe_gains(experiment: StsExperiment, measured: Measured) -> Iterator[str]:
    """Yield what the figures are of."""
    rescoring, results = experiment.rescoring, measured.results
    title = METRICS[measured.metric].title
    first = f"{title} {results[FIRST].score:.2f}"
    tuned = (n for n, one in rescoring.systems.items() if is_tuned_first_pass(one) and n in results)
    for name in tuned:
        first += f", with tuned weights {results[name].score:.2f}"
    yield (
        f"Pearson x100 on {experiment.test} of the vectors of a language model; {title} on lists of"
        f" {size(measured.sample)}, where its log-probability is added to the first pass's scores."
        f" The first pass has {first}; gains are in points over the first figure. p: that what an"
        " LM gains beyond the tuned first pass is chance."
    )
    yield f"Metric: `{METRICS[measured.metric].signature}`."


def gain_pictures(experiment: StsExperiment) -> Iterator[Picture]:
    """Reranking gain against similarity, one point a language model."""
    for measured in experiment.rescoring.judged if experiment.rescoring else ():
        gains = [one for one in measure_gains(experiment, measured) if one.context is not None]
        if len(gains) < POINTS:
            continue
        title = METRICS[measured.metric].title
        points = "; ".join(
            f"{experiment.names.short(one.lm)} {one.context:.1f} and {one.gain:.2f}"
            for one in gains
        )
        yield Picture(
            f"gains-{measured.sample.name}",
            f"Points of {title} that a language model gains on the lists of"
            f" {measured.sample.name} over the first pass against Pearson's correlation (x100) of"
            f" its context and {experiment.judges} on {experiment.test}.",
            f"Pearson x100 and gain in {title}: {points}.",
            lambda theme, gains=gains, title=title: draw_gains(theme, experiment, gains, title),
        )


def draw_gains(
    theme: Theme, experiment: StsExperiment, gains: Sequence[Gain], title: str
) -> Figure:
    """Return the figure of one set of lists."""
    figure = Figure((6.4, 3.6))
    axes = figure.subplots()
    looks = experiment.names.looks([one.lm for one in gains])
    for one in gains:
        axes.plot(
            [one.context], [one.gain], linestyle="none", **marked(theme, looks[one.lm], 8, 12)
        )
        write_right_of(axes, (one.context, one.gain), experiment.names.short(one.lm))
    axes.margins(x=0.2, y=0.2)
    axes.set_xlabel(f"Pearson x100 on {experiment.test}, context")
    axes.set_ylabel(f"gain, points of {title}")
    return figure
