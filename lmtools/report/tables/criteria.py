"""Costs and results of training criteria, and the loss without normalisation: tables like Tables
1-4 of the sampling paper.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from lmtools.evaluate import METRICS
from lmtools.evaluate.sacre import Sacre
from lmtools.report.experiment import Experiment
from lmtools.report.names import FIRST, SUM, LmPart, Names, SystemParts, shorten
from lmtools.report.page.table import Column, Table, figures, places, probability, ratio, table_of
from lmtools.report.parts.measure import Measured, Result, chance
from lmtools.report.tables.query import Query, numbers, show_interval, text_column
from lmtools.report.tables.trunks import CriteriaTrunk, Entry, kind_of, list_trunks

SAMPLING = (
    "What stands for the sum over the vocabulary: MCS Monte Carlo sampling, IS importance sampling,"
    " CPS compensated partial summation, NCE noise contrastive estimation, each of K ids from the"
    " noise."
)
COSTS = (
    "ms a step is from the trainings, validation and saving not counted; they may have run side by"
    " side on one machine: `benchmarks/bench.py criteria`, one criterion after the other, is the"
    " honest comparison."
)
LOG_Z = (
    "log Z is what scoring without normalisation leaves out: its mean and standard deviation over"
    " the tokens of up to 300 texts, in nats. A mean alone does no harm, for it is so much a word;"
    " what harms is the deviation."
)
TESTS = {
    True: "p is of the matched pairs test (MAPSSWE) between the two",
    False: "p is of the paired bootstrap between the two",
}


class Form(NamedTuple):
    """Form in which systems use a model: on lists or lattices, with which other parts."""

    lattices: bool
    others: tuple[LmPart, ...]

    def of(self, entry: Entry, normalised: bool = True) -> SystemParts:
        """Return the parts of the system of a model."""
        return SystemParts((LmPart(entry.name, normalised=normalised), *self.others), self.lattices)

    def title(self, names: Names) -> str:
        """Return `+ n-gram`, `lattice`, `lattice + n-gram`; nothing for the model alone."""
        others = [f"+ {shorten(names.describe_part(part))}" for part in self.others]
        return " ".join(["lattice"] * self.lattices + others)


@dataclass(frozen=True)
class TrunkTables:
    """The tables of one trunk on one set."""

    experiment: Experiment
    trunk: CriteriaTrunk
    measured: Measured

    @property
    def place(self) -> str:
        """The name of the set."""
        return self.measured.sample.name

    @property
    def query(self) -> Query:
        """FigureRows of the trunk's models."""
        names = [entry.name for entry in self.trunk.entries]
        return Query(self.experiment.rows, "lm", names)

    @property
    def heads(self) -> list[Column]:
        """The columns of criteria and noise."""
        noise = [entry.noise for entry in self.trunk.entries]
        return [Column("criterion", self.trunk.labels), text_column("noise", noise)]

    @cached_property
    def systems(self) -> dict[SystemParts, str]:
        """Each system by what it is made of."""
        makeup = self.experiment.names.makeup
        return {makeup(n): n for n in (*self.measured.results, *self.measured.unnormalised)}

    def forms(self, systems: Iterable[str]) -> list[Form]:
        """Return the forms in which `systems` use the trunk's models: alone, combined, on
        lattices.
        """
        models = {entry.name for entry in self.trunk.entries}
        makeups = map(self.experiment.names.makeup, systems)
        forms = {
            Form(makeup.lattices, makeup.parts[1:])
            for makeup in makeups
            if makeup.parts and makeup.parts[0].lm in models and makeup.parts[0].score == SUM
        }
        return sorted(forms)

    def title(self, form: Form) -> str:
        """Return the header of a form's scores."""
        return form.title(self.experiment.names) or self.experiment.lists.metric_label

    def costs(self) -> Table:
        """Return time a step, perplexity and score of each criterion (Tables 1-3 of the paper)."""
        entries, full = self.trunk.entries, self.trunk.full
        times = [entry.milliseconds for entry in entries]
        columns = [
            *self.heads,
            figures("K", [entry.samples for entry in entries], 0),
            figures("ms a step", times, 1, sign=1),
            figures("x CE", [ratio(time, full and full.milliseconds) for time in times]),
            *self.perplexities(),
            *self.scores(),
        ]
        title = f"Output layers and training criteria: {self.trunk.title}, {self.place}"
        return table_of(title, columns, self.notes(), part="criteria", left=2)

    def perplexities(self) -> Iterator[Column]:
        """Yield perplexities on the validation text and on the set, and how much the last that are
        known are above CE's.
        """
        word = kind_of(self.experiment, self.trunk, self.place).replace("perplexity", "ppl")
        values = {name: self.query.values("word_ppl", name) for name in ("valid", self.place)}
        for name, column in values.items():
            digits = max((places(value) for value in column if value is not None), default=0)
            yield figures(f"{name} {word}", column, digits, sign=1)
        name, full = self.place if any(values[self.place]) else "valid", self.trunk.full
        base = full and values[name][self.trunk.entries.index(full)]
        above = [ratio(value, base) for value in values[name]]
        changes = [
            value and (f"{value:.0f} times" if value >= 10 else f"{100 * (value - 1):+.1f}%")
            for value in above
        ]
        yield text_column("to CE", changes)

    def scores(self) -> Iterator[Column]:
        """Yield scores with their intervals, of each model alone and in each combination."""
        lists, rows = self.experiment.lists, self.experiment.rows
        for form in self.forms(self.measured.results):
            names = [self.systems.get(form.of(entry), "") for entry in self.trunk.entries]
            query = Query(rows, "system", names)
            yield query.column(self.title(form), lists.metric, self.place, sign=lists.sign)
            yield query.printed("95% CI", show_interval, lists.metric, self.place)

    def notes(self) -> Iterator[str]:
        """Yield notes on the figures of `costs`."""
        experiment, entries = self.experiment, self.trunk.entries
        trees = [experiment.ppl.get((entry.name, self.place), {}) for entry in entries]
        rules = dict.fromkeys(tree["rules"] for tree in trees if tree.get("rules"))
        oov = dict.fromkeys(str(tree["oov"]) for tree in trees if "oov" in tree)
        unknown = f"; words out of vocabulary in {self.place}: {' or '.join(oov)}" if oov else ""
        yield self.trunk.facts
        if any(entry.noise for entry in entries):
            yield SAMPLING
        yield COSTS
        yield (
            "Perplexities are those of words, normalised over the whole vocabulary with each"
            f" criterion's correction{unknown}."
        )
        yield from (f"{rule}." for rule in rules)
        if self.forms(self.measured.results):
            known = ", ".join(
                f"{experiment.names.label(name)} {result.score:.2f}"
                for name, result in self.measured.results.items()
                if name == FIRST or is_ngram(experiment, name)
            )
            yield (
                f"{experiment.lists.metric_label} on {self.place} to compare with: {known}."
                " Intervals are bootstrapped; bold is the best of a column."
            )

    def unnormalised(self) -> Iterator[Table]:
        """Yield the spread of the normaliser, and scores with and without normalisation (Table 4 of
        the paper): of lists, then of lattices.
        """
        every = self.forms(self.measured.unnormalised)
        spread = [
            self.query.column(f"log Z {k}", f"log Z {k}", self.place, digits=3)
            for k in ("mean", "sd")
        ]
        for lattice in (False, True):
            forms = [form for form in every if form.lattices == lattice]
            if forms or (not lattice and not all(column.is_empty for column in spread)):
                compared = [column for form in forms for column in self.comparison(form)]
                change = (
                    "The change is that from normalised to unnormalised scores;"
                    f" {TESTS[self.measured.refs.metric == 'wer']}."
                )
                name = f"{self.trunk.title}, {self.place}" + (", lattices" if lattice else "")
                yield table_of(
                    f"Without normalisation: {name}",
                    [*self.heads, *spread, *compared],
                    (LOG_Z, *[change] * bool(forms)),
                    part="criteria",
                    left=2,
                )

    def comparison(self, form: Form) -> Iterator[Column]:
        """Yield one combination with and without normalisation, the difference, its probability,
        and on lattices what each took.
        """
        makeups = [[form.of(entry, full) for entry in self.trunk.entries] for full in (True, False)]
        results = {**self.measured.results, **self.measured.unnormalised}
        plain, rough = (
            [results.get(self.systems.get(makeup)) for makeup in column] for column in makeups
        )
        pairs = [pair if all(pair) else None for pair in zip(plain, rough, strict=True)]
        yield figures(self.title(form), [result and result.score for result in plain])
        yield figures("without", [result and result.score for result in rough])
        changes = [pair and pair[1].score - pair[0].score for pair in pairs]
        yield numbers("change", changes, "{:+.2f}")
        chances = [pair and self.chance(*pair) for pair in pairs]
        yield Column("p", list(map(probability, chances)))
        for header, column in zip(("real-time factor", "without"), makeups, strict=True):
            if form.lattices:
                yield figures(header, list(map(self.real_time, column)), 3)

    def chance(self, plain: Result, rough: Result) -> float:
        """Return the probability that two systems differ so much by chance."""
        metric = METRICS[self.measured.refs.metric]
        if isinstance(metric, Sacre):
            return metric.paired_bootstrap(rough.statistics, plain.statistics).p
        return chance(self.measured.refs, rough, plain)

    def real_time(self, makeup: SystemParts) -> float | None:
        """Return seconds of rescoring a second of speech."""
        lists = self.experiment.lists
        trees = (
            tree
            for (system, name), tree in lists.lattices.items()
            if name == self.place and lists.lattice_makeup(system) == makeup
        )
        tree = next(trees, {})
        return ratio(tree.get("seconds"), tree.get("speech"))


def criteria_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield for each trunk and each set that weights were not tuned on: cost and outcome; then the
    same without normalisation.
    """
    judged = experiment.lists.judged
    every = [TrunkTables(experiment, t, m) for t in list_trunks(experiment) for m in judged]
    yield from (tables.costs() for tables in every)
    for tables in every:
        yield from tables.unnormalised()


def is_ngram(experiment: Experiment, name: str) -> bool:
    """Return whether a system uses an n-gram model alone."""
    parts = experiment.names.makeup(name).parts
    return len(parts) == 1 and experiment.configs.get(parts[0].lm, {}).get("kind") == "ngram"
