"""The main tables of rescored lists: scores with their intervals and tests, in the shape of Table 1
of the T-TA paper (Shin et al. 2020).
"""

from collections.abc import Iterator

from lmtools.evaluate.chance import say_why
from lmtools.evaluate.metrics import METRICS, ErrorRate
from lmtools.evaluate.sacre import Sacre
from lmtools.report.experiment import Experiment
from lmtools.report.measure import Measured
from lmtools.report.rows import BY_GROUP, CHANGE, ERRORS, HOLM, RELATIVE, TUNED
from lmtools.report.style import FIRST, ORACLE
from lmtools.report.table import (
    NONE,
    Column,
    Query,
    Table,
    decimal,
    probability,
    show_interval,
    table_of,
)
from lmtools.rescoring.experiment import ExperimentPlan


def main_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield for each judged set every system; of several sets first a table of all (Table 1)."""
    judged = experiment.lists.judged
    if len(judged) > 1:
        yield set_table(experiment)
    for measured in judged:
        yield main_table(experiment, measured)
        yield from gain_tables(experiment, measured)


def set_table(experiment: Experiment) -> Table:
    """Return the score of each system on each set, those that weights were tuned on first."""
    lists = experiment.lists
    every = sorted(lists.sets, key=lambda measured: not measured.sample.tuned)
    names = list(dict.fromkeys(name for measured in every for name in measured.results))
    query = Query(experiment.rows, "system", names)
    sets = [measured.sample.name for measured in every]
    columns = [score_column(experiment, query, name, name) for name in sets]
    tuned = [measured.sample.name for measured in every if measured.sample.tuned]
    note = f"Weights were tuned on {', '.join(tuned)}; bold is the best of a set."
    title = f"{lists.metric_label} after rescoring: {', '.join(sets)}"
    columns = [system_column(experiment, query), *columns]
    return table_of(title, columns, [note] * bool(tuned), part="results", full=True)


def scored_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield for each set and metric what `lmtools evaluate` found by rules of its own."""
    trees = experiment.lists.scored
    for place, metric in dict.fromkeys((on, tree["metric"]) for (_, on), tree in trees.items()):
        here = {n: t for (n, on), t in trees.items() if on == place and t["metric"] == metric}
        query = Query(experiment.rows, "scored", list(here))
        labels = dict.fromkeys(
            part["name"] for tree in here.values() for part in tree.get("by label", ())
        )
        columns = [
            system_column(experiment, query),
            query.column("score", metric, place, sign=1),
            query.printed("95% CI", show_interval, metric, place),
            *query.columns({count: (count, 0) for count in (*ERRORS, "length")}, place),
            *(query.column(label, label, place) for label in labels),
        ]
        notes = dict.fromkeys(f"Signature: `{tree['signature']}`." for tree in here.values())
        yield table_of(f"{metric} by lmtools evaluate: {place}", columns, notes, part="results")


def system_column(experiment: Experiment, query: Query) -> Column:
    return Column("system", list(map(experiment.lists.names.label, query.names)))


def score_column(experiment: Experiment, query: Query, header: str, place: str) -> Column:
    """Return the scores on a set; stressed is the best system, never the oracle."""
    lists = experiment.lists
    values = query.values(lists.metric, place)
    usable = [
        (lists.sign * value, i)
        for i, (name, value) in enumerate(zip(query.names, values, strict=True))
        if value is not None and name != ORACLE
    ]
    return Column(header, [decimal(value) for value in values], frozenset({min(usable)[1]}))


def main_table(experiment: Experiment, measured: Measured) -> Table:
    """Return the systems on one set, beside their scores on the sets that weights were tuned on."""
    lists, name = experiment.lists, measured.sample.name
    query = Query(experiment.rows, "system", list(measured.results))
    tuned = [s.sample.name for s in lists.sets if s.sample.tuned and s is not measured]
    columns = [
        score_column(experiment, query, f"{place} {lists.metric_label}", place)
        for place in (*tuned, name)
    ]
    columns.append(query.printed("95% CI", show_interval, lists.metric, name))
    if isinstance(METRICS[lists.metric], ErrorRate):
        errors = zip(("sub", "del", "ins"), ERRORS, strict=True)
        columns += [query.column(header, kind, name, digits=0) for header, kind in errors]
    columns.append(query.printed("change", lambda row: f"{row.value:+.2f}", CHANGE, name))
    columns.append(query.printed("relative", lambda row: f"{row.value:+.1f}%", RELATIVE, name))
    tests = tests_of(lists.metric)
    beyond = any(result.beyond is not None for result in measured.results.values())
    tests |= {"p (tuned)": TUNED} if beyond else {}
    if any(result.groups for result in measured.results.values()):
        kind = lists.plan.groups.partition("=")[0]
        tests |= {f"p ({kind} {test})": quantity for test, quantity in BY_GROUP.items()}
    for header, quantity in tests.items():
        columns.append(query.printed(header, lambda row: probability(row.p), quantity, name))
    if lists.plan.planned is not None:
        columns.append(
            query.printed(
                "p (Holm)",
                lambda row: probability(row.p) if row.p is not None else "planned",
                HOLM,
                name,
            )
        )
    title = f"{METRICS[lists.metric].title} after rescoring: {name}"
    test = "matched pairs" if lists.metric == "wer" else "the bootstrap"
    note = f"p (tuned): against the first pass with tuned weights and no LM, of {test}."
    notes = [*[note] * beyond, *list_signed(experiment, measured)]
    notes += list_units(lists.plan, measured)
    notes += [*list_writing(experiment, measured), *list_missing(experiment, measured)]
    columns = [system_column(experiment, query), *columns]
    return table_of(title, columns, notes, part="results", full=True)


def gain_tables(experiment: Experiment, measured: Measured) -> Iterator[Table]:
    """Yield who gains against the first pass, of an error rate."""
    results = {n: r for n, r in measured.results.items() if n not in (FIRST, ORACLE) and r.gains}
    if not results:
        return
    lists, gains = experiment.lists, [result.gains for result in results.values()]
    columns = [
        Column("system", list(map(lists.names.label, results))),
        Column("better", [str(one.better) for one in gains]),
        Column("worse", [str(one.worse) for one in gains]),
    ]
    if groups := [result.groups for result in results.values() if result.groups]:
        kind = lists.plan.groups.partition("=")[0]
        columns += [
            Column(f"{kind}s {side}", [str(getattr(one, side)) for one in groups])
            for side in ("better", "worse")
        ]
    columns.append(Column("with errors", [f"{one.wrong[0]} -> {one.wrong[1]}" for one in gains]))
    for place, header in enumerate(("lowest third", "middle third", "highest third")):
        cells = [
            "{:.2f} -> {:.2f}".format(*one.thirds[place]) if one.thirds else NONE for one in gains
        ]
        columns.append(Column(header, cells))
    note = (
        f"Utterances of which the system has fewer or more errors than the first pass, and those"
        f" with errors; {lists.metric_label} of thirds of the utterances, first pass -> system,"
        " ordered by the mean of both, an order that neither chooses. This describes and tests"
        " nothing."
    )
    title = f"Who gains: {measured.sample.name}"
    yield table_of(title, columns, [note], part="results", full=True)


def list_writing(experiment: Experiment, measured: Measured) -> Iterator[str]:
    """Yield a note on the errors that are writing alone."""
    found = [
        f"{experiment.lists.names.label(name)} {int(result.statistics[:, :3].sum()):,}, of these"
        f" {result.writing:,} are writing"
        for name, result in measured.results.items()
        if result.writing
    ]
    if found:
        yield f"Errors of blanks, apostrophes, hyphens and digits alone: {'; '.join(found)}."


def tests_of(metric: str) -> dict[str, str]:
    """Return the headers of a metric's probabilities, and the quantities that they stand at."""
    if isinstance(METRICS[metric], Sacre):
        return {"p (sacreBLEU)": metric}
    return ({"p (MAPSSWE)": metric} if metric == "wer" else {}) | {"p (bootstrap)": CHANGE}


def list_units(plan: ExperimentPlan, measured: Measured) -> Iterator[str]:
    """Yield notes on tests with whole groups, and on what Holm's values correct."""
    results = {n: r for n, r in measured.results.items() if n not in (FIRST, ORACLE)}
    groups = next((result.groups for result in results.values() if result.groups), None)
    if groups:
        kind = plan.groups.partition("=")[0]
        what = f"{groups.groups} whole {kind}s are drawn, or exchange the first pass for the system"
        if groups.groups < 2:
            what = f"undefined of {say_why(groups.groups, kind)}"
        yield f"p ({kind} bootstrap), p ({kind} flips): {what}."
    if plan.planned is not None:
        first, others = next(iter(tests_of(measured.refs.metric))), {*results} - {*plan.planned}
        yield (
            f"p (Holm): {first} of the {len(others)} comparisons of this table that were not"
            " planned, corrected together by Holm's method."
        )


def list_signed(experiment: Experiment, measured: Measured) -> Iterator[str]:
    """Yield notes on what has to stand beside p of few units, and on the systems whose matched
    pairs test is undefined.
    """
    for name, result in measured.results.items():
        tests = {"MAPSSWE": result.pairs, "sacreBLEU": result.sacre, "bootstrap": result.bootstrap}
        tests |= {"tuned": result.beside}
        told = [f"{k} {t.describe()}" for k, t in tests.items() if t and t.qualify()]
        if told and name not in (FIRST, ORACLE):
            yield f"{experiment.lists.names.label(name)}: {'; '.join(told)}."
    names = [
        experiment.lists.names.label(name)
        for name, result in measured.results.items()
        if name not in (FIRST, ORACLE) and result.pairs and result.pairs.z is None
    ]
    if names:
        yield (
            f"p (MAPSSWE) of {', '.join(names)} is that of the exact sign test: the difference is"
            " the same in all segments, so that the matched pairs test is undefined."
        )


def list_missing(experiment: Experiment, measured: Measured) -> Iterator[str]:
    """Yield a note on each system that chose nothing for some utterances."""
    for name, result in measured.results.items():
        if result.missing:
            yield (
                f"{experiment.lists.names.label(name)} has no hypothesis for {len(result.missing)}"
                f" utterances; they count as empty (first: {result.missing[0]})."
            )
