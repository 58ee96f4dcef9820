"""Tables of semantic textual similarity in the shape of Tables 3 and 4 of the T-TA paper; rank
correlation, layers, grades, time.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lmtools.evaluate import METRICS
from lmtools.report.experiment import Experiment
from lmtools.report.lms import list_trainings
from lmtools.report.measure import Measured, is_tuned_first_pass
from lmtools.report.names import FIRST, SUM, SystemParts
from lmtools.report.parts.pairs import REFERENCE
from lmtools.report.table import Column, Query, Table, figures, probability, show_interval, table_of

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


def is_constructed(experiment: Experiment) -> bool:
    """Return whether nobody judged the similarity: the corpus is MINI, or a recipe's copy of it."""
    return Path(experiment.corpus or "").name == MINI


def name_judges(experiment: Experiment) -> str:
    """Return whose the similarity is that cosines are correlated with."""
    constructed = is_constructed(experiment)
    return "constructed similarity" if constructed else "similarity as people judged it"


def describe_corpus(experiment: Experiment) -> str:
    """Return the end of titles: the corpus, and that its similarity is constructed."""
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
    stated = [f"{first} the best.", *list_warnings(experiment), *notes]
    title = f"Semantic textual similarity, {kind} x100: {describe_corpus(experiment)}"
    yield table_of(title, columns, stated, part="results")


def list_warnings(experiment: Experiment) -> Iterator[str]:
    """Yield the warning that no one judged the similarity, where no one did."""
    if is_constructed(experiment):
        yield CONSTRUCTED


def layer_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield Pearson x100 of each layer on the last set, for systems that have several."""
    pairs = experiment.pairs
    layered = pairs.deep
    if not layered:
        return
    values = {system: judged.pearsons for system, judged in layered.items()}
    tops = [highest(column) for column in values.values()]
    query = Query(experiment.rows, "vectors", list(layered))
    columns = [Column("system", [pairs.labels[system] for system in layered])]
    for number in sorted({number for by_number in values.values() for number in by_number}):
        cells = query.column("", "pearson", pairs.test, at=number).cells
        best = frozenset(i for i, top in enumerate(tops) if number == top)
        columns.append(Column(f"layer {number}" if number else "embed", cells, best))
    title = f"Pearson x100 by layer on {pairs.test}: {describe_corpus(experiment)}"
    yield table_of(title, columns, (LAYERS, *list_warnings(experiment)), part="results")


def highest(values: Mapping[int, float]) -> int | None:
    """Return the layer with the highest of the values that are numbers."""
    finite = (number for number, value in values.items() if math.isfinite(value))
    return max(finite, key=values.__getitem__, default=None)


def grade_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield the mean cosine of each system by grade of similarity, for sets whose similarity takes
    few values.
    """
    pairs = experiment.pairs
    for name in filter(pairs.graded, pairs.sets):
        query = Query(experiment.rows, "grade", list(pairs.on(name)))
        columns = [Column("system", [pairs.labels[system] for system in query.names])]
        for grade, count in zip(*np.unique(pairs.gold(name), return_counts=True), strict=True):
            header = f"{grade:g} ({count:,})"
            columns.append(query.column(header, "cosine", name, digits=3, at=grade))
        title = f"Mean cosine by similarity on {name}: {describe_corpus(experiment)}"
        yield table_of(title, columns, (GRADES, *list_warnings(experiment)), part="results")


def training_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield the table of the training time and the last losses of each language model."""
    models = experiment.models.items()
    trained = {experiment.names.short(name): model for name, model in models if model.lines}
    yield from list_trainings(experiment, trained)


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
    judged = experiment.pairs.on(experiment.pairs.test)
    best, name, layer = max(
        (value, name, layer) for name in vectors for layer, value in judged[name].pearsons.items()
    )
    result = measured.results[system]
    return Gain(
        lm,
        *(judged[lm].hundredfold(kind) if lm in judged else None for kind in ("context", "embed")),
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
    title = METRICS[measured.refs.metric].title
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
    yield f"Metric: `{METRICS[measured.refs.metric].signature}`."
