"""Costs and results of training criteria, and the loss without normalisation: tables like Tables
1-4 of the sampling paper.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from lmtools.evaluate import METRICS, paired_bootstrap
from lmtools.evaluate.sacre import Sacre
from lmtools.report.names import FIRST, SUM, LmPart, Names, SystemParts, shorten
from lmtools.report.page.columns import (
    NONE,
    Column,
    decimal,
    figures,
    places,
    probability,
    table_of,
)
from lmtools.report.page.table import Table
from lmtools.report.rescoring.criteria.trunks import (
    CriteriaTrunk,
    Entry,
    kind,
    perplexity,
    ratio,
    trunks,
)
from lmtools.report.rescoring.experiment import RescoringExperiment
from lmtools.report.rescoring.measure import SEED, Measured, Result, interval

SAMPLING = (
    "What stands for the sum over the vocabulary: MCS Monte Carlo sampling, IS importance sampling,"
    " CPS compensated partial summation, NCE noise contrastive estimation, each of K ids from the"
    " noise."
)
COSTS = (
    "ms a step is from the trainings, validation and saving not counted; they may have run side by"
    " side on one machine: `lmtools bench criteria`, one criterion after the other, is the honest"
    " comparison."
)
LOG_Z = (
    "log Z is what scoring without normalisation leaves out: its mean and standard deviation over"
    " the tokens of up to 300 texts, in nats. A mean alone does no harm, for it is so much a word;"
    " what harms is the deviation."
)


def criteria_tables(experiment: RescoringExperiment) -> Iterator[Table]:
    """For each trunk and each set that weights were not tuned on: cost and outcome; then the same
    without normalisation.
    """
    found = trunks(experiment)
    for make in (cost_tables, unnormalised_tables):
        for trunk in found:
            for measured in experiment.judged:
                yield from make(experiment, trunk, measured)


def cost_tables(
    experiment: RescoringExperiment, trunk: CriteriaTrunk, measured: Measured
) -> Iterator[Table]:
    """Time a step, perplexity and score of each criterion (Tables 1-3 of the paper)."""
    name, entries = measured.sample.name, trunk.entries
    times = [one.milliseconds for one in entries]
    columns = [
        Column("noise", [one.noise or NONE for one in entries]),
        Column("K", [decimal(one.samples, 0) for one in entries]),
        figures("ms a step", times, 1, sign=1),
        figures("x CE", [ratio(time, trunk.full and trunk.full.milliseconds) for time in times]),
        *perplexities(experiment, trunk, name),
        *scores(experiment, trunk, measured),
    ]
    title = f"Output layers and training criteria: {trunk.title}, {name}"
    notes = cost_notes(experiment, trunk, measured)
    yield table_of(title, "criterion", names_of(trunk), columns, notes, "criteria", text=1)


def perplexities(
    experiment: RescoringExperiment, trunk: CriteriaTrunk, name: str
) -> Iterator[Column]:
    """Perplexities on the validation text and on set `name`, and how much the last that are known
    are above CE's.
    """
    word = kind(experiment, trunk, name).replace("perplexity", "ppl")
    values = {
        text: [perplexity(experiment, one, text) for one in trunk.entries]
        for text in ("valid", name)
    }
    for text, column in values.items():
        digits = max((places(value) for value in column if value is not None), default=0)
        yield figures(f"{text} {word}", column, digits, sign=1)
    text = name if any(values[name]) else "valid"
    above = [ratio(value, perplexity(experiment, trunk.full, text)) for value in values[text]]
    yield Column(
        "to CE",
        [
            NONE if one is None else f"{one:.0f} times" if one >= 10 else f"{100 * (one - 1):+.1f}%"
            for one in above
        ],
    )


class Form(NamedTuple):
    """Form in which systems use a model: on lists or lattices, with which other parts."""

    lattices: bool
    others: tuple[LmPart, ...]

    def of(self, one: Entry, normalised: bool = True) -> SystemParts:
        """Return the parts of the system of a model."""
        return SystemParts((LmPart(one.name, normalised=normalised), *self.others), self.lattices)

    def title(self, names: Names) -> str:
        """Return `+ n-gram`, `lattice`, `lattice + n-gram`; nothing for the model alone."""
        others = [f"+ {shorten(names.describe_part(part))}" for part in self.others]
        return " ".join(["lattice"] * self.lattices + others)


def scores(
    experiment: RescoringExperiment, trunk: CriteriaTrunk, measured: Measured
) -> Iterator[Column]:
    """Scores with their intervals, of each model alone and in each combination."""
    found = by_makeup(experiment, measured.results)
    for form in forms(experiment, trunk, measured.results):
        results = [found.get(form.of(one)) for one in trunk.entries]
        title = form.title(experiment.names) or experiment.metric_label
        yield scored(title, measured, results)
        yield Column("95% CI", [interval(result) if result else NONE for result in results])


def forms(
    experiment: RescoringExperiment, trunk: CriteriaTrunk, systems: Iterable[str]
) -> list[Form]:
    """Return the forms in which `systems` use a trunk's models: alone, combined, on lattices."""
    models = {one.name for one in trunk.entries}
    made = map(experiment.names.makeup, systems)
    return sorted(
        {
            Form(one.lattices, one.parts[1:])
            for one in made
            if one.parts and one.parts[0].lm in models and one.parts[0].score == SUM
        }
    )


def by_makeup(
    experiment: RescoringExperiment, results: Mapping[str, Result]
) -> dict[SystemParts, Result]:
    """Return the result of each system by what it is made of."""
    return {experiment.names.makeup(name): one for name, one in results.items()}


def unnormalised_tables(
    experiment: RescoringExperiment, trunk: CriteriaTrunk, measured: Measured
) -> Iterator[Table]:
    """Spread of the normaliser, and scores with and without normalisation (Table 4 of the paper):
    of lists, then of lattices.
    """
    every = forms(experiment, trunk, measured.unnormalised)
    for lattice in (False, True):
        some = [form for form in every if form.lattices == lattice]
        if some or (
            not lattice and any(normaliser(experiment, one, measured) for one in trunk.entries)
        ):
            columns = [
                Column("noise", [one.noise or NONE for one in trunk.entries]),
                *normalisers(experiment, trunk, measured),
            ]
            for form in some:
                columns += comparison(experiment, trunk, measured, form)
            name = f"{trunk.title}, {measured.sample.name}" + (", lattices" if lattice else "")
            change = (
                "The change is that from normalised to unnormalised scores;"
                f" {TESTS[measured.metric == 'wer']}."
            )
            notes = (LOG_Z, *[change] * bool(some))
            title, names = f"Without normalisation: {name}", names_of(trunk)
            yield table_of(title, "criterion", names, columns, notes, "criteria", text=1)


TESTS = {
    True: "p is of the matched pairs test (MAPSSWE) between the two",
    False: "p is of the paired bootstrap between the two",
}


def normaliser(experiment: RescoringExperiment, one: Entry, measured: Measured) -> Mapping:
    """log Z of a model on a set, empty where it was not measured."""
    return experiment.ppl.get((one.name, measured.sample.name), {}).get("log_normaliser") or {}


def normalisers(
    experiment: RescoringExperiment, trunk: CriteriaTrunk, measured: Measured
) -> Iterator[Column]:
    """Mean and standard deviation of log Z."""
    trees = [normaliser(experiment, one, measured) for one in trunk.entries]
    for key in ("mean", "sd"):
        yield figures(f"log Z {key}", [tree.get(key) for tree in trees], 3)


def comparison(
    experiment: RescoringExperiment, trunk: CriteriaTrunk, measured: Measured, form: Form
) -> Iterator[Column]:
    """Yield one combination with and without normalisation, the difference, its probability, and on
    lattices what each took.
    """
    made = [[form.of(one, normalised) for one in trunk.entries] for normalised in (True, False)]
    plain = list(map(by_makeup(experiment, measured.results).get, made[0]))
    rough = list(map(by_makeup(experiment, measured.unnormalised).get, made[1]))
    pairs = [pair if all(pair) else None for pair in zip(plain, rough, strict=True)]
    title = form.title(experiment.names) or experiment.metric_label
    yield figures(title, [one and one.score for one in plain])
    yield figures("without", [one and one.score for one in rough])
    yield Column(
        "change", [f"{pair[1].score - pair[0].score:+.2f}" if pair else NONE for pair in pairs]
    )
    yield Column("p", [probability(chance(measured, *pair)) if pair else NONE for pair in pairs])
    for header, some in zip(("real-time factor", "without"), made, strict=True):
        if form.lattices:
            yield figures(header, [real_time(experiment, one, measured) for one in some], 3)


def chance(measured: Measured, plain: Result, rough: Result) -> float:
    """Return the probability that two systems differ so much by chance."""
    measure = METRICS[measured.metric]
    if isinstance(measure, Sacre):
        return measure.paired_bootstrap(rough.statistics, plain.statistics).p
    if measured.metric != "wer":
        return paired_bootstrap(rough.statistics, plain.statistics, measured.metric, SEED).p
    return measured.refs.compare(rough.texts, plain.texts).p


def real_time(
    experiment: RescoringExperiment, made: SystemParts, measured: Measured
) -> float | None:
    """Seconds of rescoring a second of speech."""
    trees = (
        tree
        for (system, name), tree in experiment.lattices.items()
        if name == measured.sample.name and experiment.lattice_makeup(system) == made
    )
    tree = next(trees, {})
    return ratio(tree.get("seconds"), tree.get("speech"))


def cost_notes(
    experiment: RescoringExperiment, trunk: CriteriaTrunk, measured: Measured
) -> Iterator[str]:
    """Yield notes on the figures of `cost_tables`."""
    trees = [experiment.ppl.get((one.name, measured.sample.name), {}) for one in trunk.entries]
    rules = dict.fromkeys(tree["rules"] for tree in trees if tree.get("rules"))
    oov = dict.fromkeys(str(tree["oov"]) for tree in trees if "oov" in tree)
    unknown = (
        f"; words out of vocabulary in {measured.sample.name}: {' or '.join(oov)}" if oov else ""
    )
    yield trunk.facts
    if any(one.noise for one in trunk.entries):
        yield SAMPLING
    yield COSTS
    yield (
        "Perplexities are those of words, normalised over the whole vocabulary with each"
        f" criterion's correction{unknown}."
    )
    yield from (f"{rule}." for rule in rules)
    if not forms(experiment, trunk, measured.results):
        return
    known = ", ".join(
        f"{experiment.names.label(name)} {one.score:.2f}"
        for name, one in measured.results.items()
        if name == FIRST or is_ngram(experiment, name)
    )
    yield (
        f"{experiment.metric_label} on {measured.sample.name} to compare with: {known}. Intervals"
        " are bootstrapped; bold is the best of a column."
    )


def is_ngram(experiment: RescoringExperiment, name: str) -> bool:
    """Return whether a system uses an n-gram model alone."""
    parts = experiment.names.makeup(name).parts
    return len(parts) == 1 and experiment.configs.get(parts[0].lm, {}).get("kind") == "ngram"


def scored(header: str, measured: Measured, results: Sequence[Result | None]) -> Column:
    """Return a column of scores."""
    sign = 1 if METRICS[measured.metric].lower_is_better else -1
    return figures(header, [one and one.score for one in results], sign=sign)


def names_of(trunk: CriteriaTrunk) -> list[str]:
    """Return the criterion of each entry, with the model's name where several are alike."""
    kinds = [(one.criterion, one.noise, one.samples) for one in trunk.entries]
    return [
        one.shown.label + (f" ({one.name})" if kinds.count(kinds[i]) > 1 else "")
        for i, one in enumerate(trunk.entries)
    ]
