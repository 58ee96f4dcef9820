"""The tables of scores: every system on every set that weights were not tuned on, in the shape of
Table 1 of the T-TA paper (Shin et al. 2020).
"""

from collections.abc import Container, Iterator

from lmtools.evaluate import METRICS
from lmtools.evaluate.metrics import ErrorRate
from lmtools.evaluate.sacre import Sacre
from lmtools.report.names import FIRST, ORACLE
from lmtools.report.page.columns import NONE, decimal, probability
from lmtools.report.page.table import Table
from lmtools.report.rescoring.experiment import RescoringExperiment
from lmtools.report.rescoring.measure import Measured, Result, interval


def main_tables(experiment: RescoringExperiment) -> list[Table]:
    """For each set that weights were not tuned on: every system, its score, interval, change and
    significance; where they are several, first the scores of all (Table 1 of the paper).
    """
    judged = experiment.judged
    several = [set_table(experiment)] if len(judged) > 1 else []
    return [*several, *(main_table(experiment, measured) for measured in judged)]


def set_table(experiment: RescoringExperiment) -> Table:
    """Return the score of each system on each set, those that weights were tuned on first."""
    every = sorted(experiment.sets, key=lambda one: not one.sample.tuned)
    names = list(dict.fromkeys(name for one in every for name in one.results))
    rows = tuple(
        (
            experiment.names.label(name),
            *(decimal(one.results[name].score) if name in one.results else NONE for one in every),
        )
        for name in names
    )
    best = frozenset((names.index(best_of(one)), 1 + j) for j, one in enumerate(every))
    sets = [one.sample.name for one in every]
    title = f"{experiment.metric_label} after rescoring: {', '.join(sets)}"
    tuned = [one.sample.name for one in every if one.sample.tuned]
    notes = (f"Weights were tuned on {', '.join(tuned)}; bold is the best of a set.",)
    return Table(title, ("system", *sets), rows, notes[: len(tuned)], best=best, part="results")


def main_table(experiment: RescoringExperiment, measured: Measured) -> Table:
    """Return the systems on one set, beside their scores on the sets that weights were tuned on."""
    tuned = [one for one in experiment.sets if one.sample.tuned and one is not measured]
    rate = isinstance(METRICS[measured.metric], ErrorRate)
    name = measured.sample.name
    sets = [f"{one.sample.name} {experiment.metric_label}" for one in (*tuned, measured)]
    header = ["system", *sets, "95% CI"]
    header += ["sub", "del", "ins"] if rate else []
    header += ["change", "relative", *tests_of(measured.metric)]
    beyond = any(result.beyond is not None for result in measured.results.values())
    header += ["p (tuned)"] * beyond
    first = measured.results[FIRST].score
    rows = []
    for system, result in measured.results.items():
        scores = [
            decimal(one.results[system].score) if system in one.results else NONE for one in tuned
        ]
        counts = [f"{count:,}" for count in result.statistics.sum(0)[:3].tolist()] if rate else []
        figures = [*scores, decimal(result.score), interval(result), *counts]
        figures += change(result, first, system, measured)
        chance = None if system in (FIRST, ORACLE) else result.beyond
        figures += [NONE if chance is None else probability(chance)] * beyond
        rows.append((experiment.names.label(system), *figures))
    best = frozenset(stressed(one, 1 + j, measured) for j, one in enumerate([*tuned, measured]))
    title = f"{METRICS[measured.metric].title} after rescoring: {name}"
    test = "matched pairs" if measured.metric == "wer" else "the bootstrap"
    note = f"p (tuned): against the first pass with tuned weights and no LM, of {test}."
    notes = (*[note] * beyond, *missing(experiment, measured))
    return Table(title, tuple(header), tuple(rows), notes, best=best, part="results")


def stressed(measured: Measured, column: int, rows: Measured) -> tuple[int, int]:
    """Return the cell of the best system that could be used (not the oracle), in a table with the
    systems of `rows`.
    """
    return list(rows.results).index(best_of(measured, rows.results)), column


def best_of(measured: Measured, names: Container[str] | None = None) -> str:
    """Return the best system on a set that could be used (not the oracle), among `names` or all."""
    sign = 1 if METRICS[measured.metric].lower_is_better else -1
    usable = [
        name for name in measured.results if name != ORACLE and (names is None or name in names)
    ]
    return min(usable, key=lambda name: sign * measured.results[name].score)


def tests_of(metric: str) -> dict[str, str]:
    """Return the headers of a metric's probabilities, and the names of their tests."""
    if isinstance(METRICS[metric], Sacre):
        return {"p (sacreBLEU)": "sacre"}
    return ({"p (MAPSSWE)": "pairs"} if metric == "wer" else {}) | {"p (bootstrap)": "bootstrap"}


def change(result: Result, first: float, system: str, measured: Measured) -> list[str]:
    """Absolute and relative change to the first pass and the probabilities that it is chance; the
    oracle has no probabilities.
    """
    tests = [getattr(result, test) for test in tests_of(measured.metric).values()]
    if system == FIRST:
        return [NONE] * (2 + len(tests))
    relative = f"{100 * (result.score / first - 1):+.1f}%" if first else NONE
    chances = [NONE if system == ORACLE or not test else probability(test.p) for test in tests]
    return [f"{result.score - first:+.2f}", relative, *chances]


def missing(experiment: RescoringExperiment, measured: Measured) -> Iterator[str]:
    """Yield a note on each system that chose nothing for some utterances."""
    for name, result in measured.results.items():
        if result.missing:
            yield (
                f"{experiment.names.label(name)} has no hypothesis for {len(result.missing)}"
                f" utterances; they count as empty (first: {result.missing[0]})."
            )
