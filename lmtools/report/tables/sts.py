"""Tables of semantic textual similarity in the shape of Tables 3 and 4 of the T-TA paper; rank
correlation, layers, grades, time.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from lmtools.report.experiment import Experiment
from lmtools.report.page.columns import Column, figures, probability, table_of
from lmtools.report.page.table import NONE, Table
from lmtools.report.parts.pairs import REFERENCE
from lmtools.report.rows import FigureRow
from lmtools.report.tables.lms import list_trainings
from lmtools.report.tables.query import Query

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
    pairs, systems = experiment.pairs, experiment.pairs.systems
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
        columns.append(Column(f"{pairs.test} 95%", list(map(show_ends, rows))))
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


def show_ends(row: FigureRow | None) -> str:
    """Return a 95% interval in one cell; of negative ends too, so that no hyphen stands between."""
    return NONE if row is None or row.low is None else f"{row.low:.2f} to {row.high:.2f}"


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
