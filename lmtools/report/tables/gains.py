"""Similarity against reranking: how far the vectors of a language model agree with judgements, and
what its scores gain on N-best lists.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lmtools.evaluate import METRICS
from lmtools.report.experiment import Experiment
from lmtools.report.names import FIRST, SUM, SystemParts
from lmtools.report.page.columns import Column, figures, probability, table_of
from lmtools.report.page.table import Table
from lmtools.report.parts.measure import Measured, is_tuned_first_pass
from lmtools.report.tables.sts import describe_corpus


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


def measure_gains(experiment: Experiment, measured: Measured) -> list[Gain]:
    """Return what each language model with vectors gains on a set of lists, in printing order."""
    pairs, systems = experiment.pairs, experiment.lists.systems
    alone = {
        system.makeup.parts[0].lm: name
        for name, system in systems.items()
        if name in measured.results and is_alone(system.makeup)
    }
    vectors: dict[str, list[str]] = {}
    for name in pairs.on(pairs.test):
        vectors.setdefault(pairs.ways[name].lm, []).append(name)
    return [
        measure_gain(experiment, measured, lm, alone[lm], vectors=names)
        for lm, names in vectors.items()
        if lm in alone
    ]


def is_alone(makeup: SystemParts) -> bool:
    """Return whether a system adds one language model's log-probability to the first pass."""
    whole = len(makeup.parts) == 1 and makeup.parts[0].score == SUM
    return whole and makeup.normalised and not makeup.lattices and not makeup.interpolated


def measure_gain(
    experiment: Experiment, measured: Measured, lm: str, system: str, vectors: Sequence[str]
) -> Gain:
    """Return the figures of a language model with these systems of vectors."""
    judged, test = experiment.pairs.on(experiment.pairs.test), experiment.pairs.test
    best, name, layer = max(
        (value, name, layer) for name in vectors for layer, value in judged[name].pearsons.items()
    )
    result = measured.results[system]
    return Gain(
        lm,
        *(experiment.quantity(kind, lm, test) for kind in ("context", "embed")),
        best=best,
        vectors=name,
        layer=layer,
        score=result.score,
        gain=experiment.lists.sign * (measured.results[FIRST].score - result.score),
        p=result.beyond,
    )


def gain_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield similarity and reranking side by side, a language model a row, for each set of
    lists.
    """
    for measured in experiment.lists.judged if experiment.lists else ():
        if gains := measure_gains(experiment, measured):
            yield gain_table(experiment, measured, gains)


def gain_table(experiment: Experiment, measured: Measured, gains: Sequence[Gain]) -> Table:
    """Return the table of one set of lists."""
    test, lists, label = experiment.pairs.test, experiment.lists, experiment.label
    parts = [f"layer {gain.layer}" if gain.layer else "embed" for gain in gains]
    kinds = {"context": "context", "embed": "embed", "best layer": "best"}
    columns = [
        Column("LM", [experiment.names.short(gain.lm) for gain in gains]),
        *(
            figures(f"{test} {header}", [getattr(gain, kind) for gain in gains], sign=-1)
            for header, kind in kinds.items()
        ),
        Column("which", [f"{label(g.vectors)}, {p}" for g, p in zip(gains, parts, strict=True)]),
        figures(lists.metric_label, [gain.score for gain in gains], sign=lists.sign),
        figures("gain", [gain.gain for gain in gains], sign=-1),
        Column("p", [probability(gain.p) for gain in gains]),
    ]
    title = f"Similarity against reranking: {describe_corpus(experiment)}"
    return table_of(title, columns, describe_gains(experiment, measured), part="results")


def describe_gains(experiment: Experiment, measured: Measured) -> Iterator[str]:
    """Yield what the figures are of."""
    systems, results = experiment.lists.systems, measured.results
    title = METRICS[measured.metric].title
    first = f"{title} {results[FIRST].score:.2f}"
    for name, system in systems.items():
        if is_tuned_first_pass(system) and name in results:
            first += f", with tuned weights {results[name].score:.2f}"
    yield (
        f"Pearson x100 on {experiment.pairs.test} of the vectors of a language model; {title} on"
        f" lists of {measured.sample.size}, where its log-probability is added to the first pass's"
        f" scores. The first pass has {first}; gains are in points over the first figure. p: that"
        " what an LM gains beyond the tuned first pass is chance."
    )
    yield f"Metric: `{METRICS[measured.metric].signature}`."
