"""Tables of semantic textual similarity in the shape of Tables 3 and 4 of the T-TA paper; rank
correlation, layers, grades, time.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from lmtools.errors import UserError
from lmtools.report.lm.tables import trainings
from lmtools.report.page.columns import NONE, Column, figures, probability, table_of
from lmtools.report.page.table import Table
from lmtools.report.papers.run_times import speed_tables
from lmtools.report.stages import stage_tables
from lmtools.report.sts.experiment import REFERENCE, Judged, Layer, StsExperiment
from lmtools.report.sts.gains import gain_tables

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


def pearson_tables(experiment: StsExperiment) -> Iterator[Table]:
    """Pearson x100 of each system on each set (Tables 3 and 4 of the T-TA paper)."""
    columns = [*correlated(experiment, "pearson"), *compared(experiment)]
    tests = (difference_note(experiment),) if REFERENCE in experiment.on(experiment.test) else ()
    yield from main_table(experiment, "Pearson", columns, (WHAT, *tests))


def spearman_tables(experiment: StsExperiment) -> Iterator[Table]:
    """Spearman x100 of each system on each set."""
    yield from main_table(experiment, "Spearman", list(correlated(experiment, "spearman")), (WHAT,))


def main_table(
    experiment: StsExperiment, kind: str, columns: Sequence[Column], notes: Sequence[str]
) -> Iterator[Table]:
    if experiment.systems:
        title = f"Semantic textual similarity, {kind} x100: {experiment.of_what}"
        stated = (
            f"{kind}'s correlation, times 100, of cosine and {experiment.judges}; bold is the"
            " best.",
            *constructed(experiment),
            *notes,
        )
        yield table_of(
            title, "system", list(experiment.labels.values()), columns, stated, "results"
        )


def constructed(experiment: StsExperiment) -> Iterator[str]:
    """Yield the warning that no one judged the similarity, where no one did."""
    if experiment.constructed:
        yield CONSTRUCTED


def correlated(experiment: StsExperiment, kind: str) -> Iterator[Column]:
    """Context and embed on each set; behind the last set's the 95% interval of what a system stands
    for.
    """
    systems, test = experiment.systems, experiment.test
    for name in experiment.sets:
        judged = experiment.on(name)
        for part in ("context", "embed"):
            yield figures(
                f"{name} {part}",
                [hundredfold(judged.get(system), part, kind) for system in systems],
                sign=-1,
            )
        if name == test:
            yield Column(
                f"{name} 95%",
                [
                    interval(judged[system].best, kind) if system in judged else NONE
                    for system in systems
                ],
            )


def hundredfold(judged: Judged | None, part: str, kind: str) -> float | None:
    """Return a correlation times 100 of a part: context, embed or best; None without one."""
    layer: Layer | None = judged and getattr(judged, part)
    return layer and 100 * layer.correlations[kind][0]


def interval(layer: Layer, kind: str) -> str:
    """Return a 95% interval in one cell; of negative ends too, so that no hyphen stands between."""
    _, low, high = layer.correlations[kind]
    return f"{100 * low:.2f} to {100 * high:.2f}" if math.isfinite(low + high) else NONE


def compared(experiment: StsExperiment) -> Iterator[Column]:
    """Yield the probability of each system's difference to T-TA's context on the last set."""
    judged = experiment.on(experiment.test)
    if reference := judged.get(REFERENCE):
        cells = [
            difference(reference, judged[system]) if system in judged else NONE
            for system in experiment.systems
        ]
        yield Column("p", cells)


def difference(reference: Judged, one: Judged) -> str:
    """Return the probability in one cell; a dash for the reference itself and where the test is not
    defined.
    """
    from lmtools.evaluate.similarity import williams  # scipy is slow to import

    if one is reference:
        return NONE
    try:
        return probability(williams(one.gold, reference.best.cosines, one.best.cosines))
    except UserError:  # cosines that are all alike, or next to no pairs
        return NONE


def difference_note(experiment: StsExperiment) -> str:
    """Return the note on the intervals and probabilities."""
    return (
        f"The interval and p are of the context on {experiment.test}, of static vectors the"
        f" embed. p: two-sided, that a system is as good as {experiment.labels[REFERENCE]}'s"
        " context, by Williams' test of dependent correlations (Williams 1959, Steiger 1980)."
    )


def layer_tables(experiment: StsExperiment) -> Iterator[Table]:
    """Pearson x100 of each layer on the last set, for systems that have several."""
    layered = deep(experiment)
    if not layered:
        return
    numbers = sorted({layer.number for one in layered.values() for layer in one.layers})
    values = {system: pearsons(one) for system, one in layered.items()}
    columns = []
    for number in numbers:
        plain = figures(
            f"layer {number}" if number else "embed", [by.get(number) for by in values.values()]
        )
        columns.append(
            Column(
                plain.header,
                plain.cells,
                frozenset(i for i, by in enumerate(values.values()) if number == top(by)),
            )
        )
    title = f"Pearson x100 by layer on {experiment.test}: {experiment.of_what}"
    note = (
        "embed is the embedding layer, the highest number of a system its context; bold is the best"
        " layer of each system."
    )
    names = [experiment.labels[system] for system in layered]
    yield table_of(title, "system", names, columns, (note, *constructed(experiment)), "results")


def deep(experiment: StsExperiment) -> dict[str, Judged]:
    """Return the systems of which several layers were taken on the last set."""
    return {
        system: one for system, one in experiment.on(experiment.test).items() if len(one.layers) > 1
    }


def pearsons(one: Judged) -> dict[int, float]:
    """Pearson x100 by number of the layer."""
    return {layer.number: 100 * layer.correlations["pearson"][0] for layer in one.layers}


def top(values: Mapping[int, float]) -> int | None:
    """Return the layer with the highest of the values that are numbers."""
    return max(
        (number for number, value in values.items() if math.isfinite(value)),
        key=values.__getitem__,
        default=None,
    )


def grade_tables(experiment: StsExperiment) -> Iterator[Table]:
    """Yield the mean cosine of each system by grade of similarity, for sets whose similarity takes
    few values.
    """
    for name in experiment.sets:
        if not experiment.graded(name):
            continue
        gold, judged = experiment.gold(name), experiment.on(name)
        columns = []
        for grade in np.unique(gold):
            means = [float(one.best.cosines[gold == grade].mean()) for one in judged.values()]
            columns.append(figures(f"{grade:g} ({int((gold == grade).sum()):,})", means, 3))
        title = f"Mean cosine by similarity on {name}: {experiment.of_what}"
        note = (
            "Columns are grades of similarity, in parentheses the number of pairs; cosines are of"
            " contexts, of static vectors of embeds."
        )
        names = [experiment.labels[system] for system in judged]
        yield table_of(title, "system", names, columns, (note, *constructed(experiment)), "results")


def training_tables(experiment: StsExperiment) -> Iterator[Table]:
    """Yield the table of the training time and the last losses of each language model."""
    models, short = experiment.models.items(), experiment.names.short
    trained = {short(name): model for name, model in models if model.lines}
    yield from trainings(trained)


STS_TABLES: tuple[Callable[[StsExperiment], Iterator[Table]], ...] = (
    pearson_tables, gain_tables, spearman_tables, layer_tables, grade_tables, training_tables,
    speed_tables,
    stage_tables,
)  # fmt: skip
