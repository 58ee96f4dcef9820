#!/usr/bin/env python3
"""criteria_tables.py EXP REPORT.yaml: costs and results of training criteria, and the loss without
normalisation, as in Tables 1-4 of Gao et al. 2021, added to the report of EXP; perplexity over the
time of training, and against the time of a step.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from lmtools.base.errors import exit_with_message
from lmtools.evaluate.metrics import METRICS, ErrorRate
from lmtools.report import add_part
from lmtools.report.artifacts import (
    LATTICE_SHAPE,
    PPL_SHAPE,
    read_by_set,
    read_configs,
    read_learning,
    read_models,
)
from lmtools.report.drawing import (
    EDGE,
    EndPanel,
    Picture,
    Theme,
    chart,
    end_panel,
    plain_ticks,
    scale_of,
)
from lmtools.report.lists import find_lattice_makeup, read_names
from lmtools.report.models import curve, step_time
from lmtools.report.rows import UNNORMALISED, FigureRows
from lmtools.report.style import (
    CE,
    FIRST,
    SUM,
    LmPart,
    Look,
    Names,
    SystemParts,
    load_style,
    shorten,
)
from lmtools.report.table import (
    NONE,
    Column,
    Query,
    Table,
    figures,
    numbers,
    places,
    probability,
    ratio,
    show_interval,
    table_of,
    text_column,
)

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
# panels: of criteria over the whole vocabulary, of sampled ones
FULL, BINARY, CROSS = "full", "BCE, sampled", "CE, sampled and adaptive"
PANEL = 6  # lines that one panel can hold
TIME = (
    "perplexity of a token of the validation text, over the full vocabulary, against the time spent"
    " in training steps; the number is where a training ended. Equal distances sideways are equal"
    f" factors of time. {EDGE}"
)
PRICE = (
    "against the time of a training step; the number is the perplexity, the dashed lines are those"
    f" of the full softmax (CE): left of it is faster, below it better. {EDGE}"
)


class Printed(NamedTuple):
    """How a criterion is called and drawn."""

    label: str
    panel: str
    look: Look


CRITERIA = {  # by name in config.yaml, in the order of the paper; MSE grey, BCE blue, CE orange
    "mse": Printed("MSE", FULL, Look("#4b5563", "#c3cad6", "s")),
    "mse-sigmoid": Printed("MSE-sigmoid", FULL, Look("#8b93a1", "#8b93a1", "s", "--")),
    "bce": Printed("BCE", FULL, Look("#08306b", "#cfe3fb", "o")),
    "softmax": Printed("CE", FULL, Look("#7a2e00", "#ffdcc2", "D")),
    "bce-mcs": Printed("BCE-MCS", BINARY, Look("#0b5cad", "#4aa0f5", "^", "--")),
    "bce-is": Printed("BCE-IS", BINARY, Look("#2583d8", "#7fbdf8", "v", "-.")),
    "bce-cps": Printed("BCE-CPS", BINARY, Look("#0093b3", "#35c3e0", "P", ":")),
    "bce-nce": Printed("BCE-NCE", BINARY, Look("#4a55c7", "#9aa3ff", "X")),
    "ce-mcs": Printed("CE-MCS", CROSS, Look("#b34700", "#f58a3c", "^", "--")),
    "ce-is": Printed("CE-IS", CROSS, Look("#d97706", "#f7b355", "v", "-.")),
    "ce-cps": Printed("CE-CPS", CROSS, Look("#c2410c", "#ff7a45", "P", ":")),
    "ce-nce": Printed("CE-NCE log h", CROSS, Look("#b5851a", "#e8cf6a", "X")),
    "ce-nce-paper": Printed("CE-NCE Eq. 21", CROSS, Look("#6b5310", "#fff0b3", "X", ":")),
    "adaptive": Printed("adaptive softmax", CROSS, Look("#00876a", "#2fcaa0", "*")),
}


@dataclass(frozen=True)
class Entry:
    """One language model: its criterion and how that is printed and drawn, noise and number of
    samples (None where it has no noise), milliseconds a training step.
    """

    name: str
    criterion: str
    noise: str | None
    samples: int | None
    milliseconds: float | None
    shown: Printed


@dataclass(frozen=True)
class CriteriaTrunk:
    """Language models of one model, objective, architecture and vocabulary, in the order of
    criteria.
    """

    key: str  # in names of files
    title: str
    facts: str
    entries: tuple[Entry, ...]

    @property
    def full(self) -> Entry | None:
        """The model that was trained with the full softmax, to which the others compare."""
        return next((entry for entry in self.entries if entry.criterion == CE), None)

    @property
    def labels(self) -> list[str]:
        """Return the criterion of each entry, with the model's name where several are alike."""
        kinds = [(entry.criterion, entry.noise, entry.samples) for entry in self.entries]
        return [
            entry.shown.label + (f" ({entry.name})" if kinds.count(kind) > 1 else "")
            for kind, entry in zip(kinds, self.entries, strict=True)
        ]

    @property
    def titles(self) -> dict[Entry, str]:
        """Return the criterion of each entry; where several have it, with the noise, the number of
        samples or the model's name.
        """
        parts = [
            (entry.shown.label, entry.noise, entry.samples and f"K {entry.samples:,}")
            for entry in self.entries
        ]
        forms = [[", ".join(filter(None, part[:size])) for part in parts] for size in (1, 2, 3)]
        unique = [
            next((form[i] for form in forms if form.count(form[i]) == 1), None)
            for i in range(len(parts))
        ]
        return {
            entry: title or f"{entry.shown.label} ({entry.name})"
            for title, entry in zip(unique, self.entries, strict=True)
        }


@dataclass(frozen=True)
class Trained:
    """The language models of an experiment, by name, and what its report has of them."""

    rows: FigureRows
    names: Names
    configs: Mapping[str, Mapping]
    learning: Mapping[str, Sequence[Mapping]]
    ppl: Mapping[tuple[str, str], Mapping]
    lattices: Mapping[tuple[str, str], Mapping]
    hashes: Mapping[str, str]

    @cached_property
    def metric(self) -> str:
        """The metric that weights were tuned to."""
        return next(row.quantity for row in self.rows.every if row.name == FIRST)

    @property
    def metric_label(self) -> str:
        """The metric's printed name with its unit."""
        kind = METRICS[self.metric]
        return f"{kind.title} %" if isinstance(kind, ErrorRate) else kind.title

    @property
    def judged(self) -> list[str]:
        """The sets that weights were not tuned on: those whose scores have intervals."""
        return [row.set for row in self.rows.every if row.name == FIRST and row.low is not None]

    def scores(self, place: str) -> dict[str, float]:
        """Return the score of each system on a set."""
        key = "system", place, self.metric
        rows = (row for row in self.rows.every if (row.kind, row.set, row.quantity) == key)
        return {row.name: row.value for row in rows}


def read_trained(home: Path, conf: Path) -> Trained:
    """Read the language models of `home` and its report."""
    return Trained(
        FigureRows.read(home / "report/rows.csv"),
        read_names(home, load_style(conf)),
        read_configs(home),
        read_learning(home),
        read_by_set("ppl", PPL_SHAPE, home),
        read_by_set("lattice", LATTICE_SHAPE, home),
        read_models(home),
    )


def list_trunks(trained: Trained) -> list[CriteriaTrunk]:
    """Return the trunks that were trained with other criteria than the softmax."""
    names, groups = trained.names, {}
    for name, tree in trained.configs.items():
        if tree.get("model") and tree.get("criterion", CE) in CRITERIA:
            entry = make_entry(name, tree, trained.learning.get(name, ()))
            groups.setdefault(identity(tree), []).append(entry)
    groups = {
        key: entries
        for key, entries in groups.items()
        if any(entry.criterion != CE for entry in entries)
    }
    return [make_trunk(names, key, list(groups), entries) for key, entries in groups.items()]


def make_trunk(
    names: Names, key: tuple, keys: Sequence[tuple], entries: Sequence[Entry]
) -> CriteriaTrunk:
    """Return a trunk by what `identity` says of it and of the others; those of one model are told
    apart by the settings that differ.
    """
    model, objective, arch, vocabulary = key
    alike = [other for other in keys if other[0] == model]
    settings = [f"{name} {value}" for name, value in arch]
    apart = [
        text
        for text, setting in zip(settings, arch, strict=True)
        if any(setting not in other[2] for other in alike)
    ]
    count = dict(vocabulary).get("size")
    size = f"vocabulary of {count:,} ids" if count else "vocabulary unknown"
    facts = ", ".join([f"Model {model}", f"objective {objective}", *settings])
    title, number, order = names.lms.short(model), alike.index(key) + 1, list(CRITERIA)
    arranged = sorted(
        entries, key=lambda e: (order.index(e.criterion), e.noise or "", e.samples or 0, e.name)
    )
    several = len(alike) > 1
    return CriteriaTrunk(
        f"{model}-{number}" if several else model,
        f"{title} ({', '.join(apart) or number})" if several else title,
        f"{facts}; {size}.",
        tuple(arranged),
    )


def identity(tree: Mapping) -> tuple:
    """Return model, objective, architecture and vocabulary of a config.yaml."""
    arch = tuple(sorted((name, str(value)) for name, value in (tree.get("arch") or {}).items()))
    vocabulary = tuple((tree.get("vocabulary") or {}).items())
    return tree["model"], tree.get("objective", NONE), arch, vocabulary


def make_entry(name: str, tree: Mapping, lines: Sequence[Mapping]) -> Entry:
    """Return a language model by its config.yaml and metrics.jsonl; of noise those further settings
    are printed that were given.
    """
    criterion, given = tree.get("criterion", CE), tree.get("output") or {}
    known = {**given, **(tree.get("facts") or {}).get("criterion", {})}
    noise = known.get("noise")
    power = noise == "unigram" and "power" in given and f"power {given['power']}"
    # as the sampling paper prints it
    printed = given.get("target_in_sum") is False and "printed sum"
    settings = ", ".join(map(str, filter(None, (noise, power, given.get("drawing"), printed))))
    return Entry(
        name,
        criterion,
        settings or None,
        known.get("samples"),
        milliseconds=step_time(lines),
        shown=CRITERIA[criterion],
    )


def kind_of(trained: Trained, trunk: CriteriaTrunk, name: str) -> str:
    """Return the kind of a trunk's perplexities: `perplexity` or `pseudo-perplexity`."""
    kinds = {trained.ppl.get((entry.name, name), {}).get("kind") for entry in trunk.entries}
    return "pseudo-perplexity" if "pseudo-perplexity" in kinds else "perplexity"


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

    trained: Trained
    trunk: CriteriaTrunk
    place: str

    @property
    def query(self) -> Query:
        """FigureRows of the trunk's models."""
        names = [entry.name for entry in self.trunk.entries]
        return Query(self.trained.rows, "lm", names)

    @property
    def heads(self) -> list[Column]:
        """The columns of criteria and noise."""
        noise = [entry.noise for entry in self.trunk.entries]
        return [Column("criterion", self.trunk.labels), text_column("noise", noise)]

    @cached_property
    def systems(self) -> dict[SystemParts, str]:
        """Each system by what it is made of."""
        return {self.trained.names.makeup(name): name for name in self.trained.scores(self.place)}

    def forms(self, normalised: bool) -> list[Form]:
        """Return the forms in which systems of normalised scores, or others, use the trunk's
        models: alone, combined, on lattices.
        """
        models = {entry.name for entry in self.trunk.entries}
        makeups = (makeup for makeup in self.systems if makeup.normalised == normalised)
        forms = {
            Form(makeup.lattices, makeup.parts[1:])
            for makeup in makeups
            if makeup.parts and makeup.parts[0].lm in models and makeup.parts[0].score == SUM
        }
        return sorted(forms)

    def title(self, form: Form) -> str:
        """Return the header of a form's scores."""
        return form.title(self.trained.names) or self.trained.metric_label

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
        return table_of(title, columns, self.notes(), left=2)

    def perplexities(self) -> Iterator[Column]:
        """Yield perplexities on the validation text and on the set, and how much the last that are
        known are above CE's.
        """
        word = kind_of(self.trained, self.trunk, self.place).replace("perplexity", "ppl")
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
        metric = self.trained.metric
        sign = 1 if METRICS[metric].lower_is_better else -1
        for form in self.forms(normalised=True):
            query = self.system_query(form)
            yield query.column(self.title(form), metric, self.place, sign=sign)
            yield query.printed("95% CI", show_interval, metric, self.place)

    def system_query(self, form: Form, normalised: bool = True) -> Query:
        """Return a query of the systems that use the trunk's models in a form."""
        makeups = [form.of(entry, normalised) for entry in self.trunk.entries]
        names = [self.systems.get(makeup, "") for makeup in makeups]
        return Query(self.trained.rows, "system", names)

    def notes(self) -> Iterator[str]:
        """Yield notes on the figures of `costs`."""
        trained, entries = self.trained, self.trunk.entries
        trees = [trained.ppl.get((entry.name, self.place), {}) for entry in entries]
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
        if self.forms(normalised=True):
            known = ", ".join(
                f"{trained.names.label(name)} {score:.2f}"
                for name, score in trained.scores(self.place).items()
                if name == FIRST or is_ngram(trained, name)
            )
            yield (
                f"{trained.metric_label} on {self.place} to compare with: {known}."
                " Intervals are bootstrapped; bold is the best of a column."
            )

    def unnormalised(self) -> Iterator[Table]:
        """Yield the spread of the normaliser, and scores with and without normalisation (Table 4 of
        the paper): of lists, then of lattices.
        """
        every = self.forms(normalised=False)
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
                    f" {TESTS[self.trained.metric == 'wer']}."
                )
                name = f"{self.trunk.title}, {self.place}" + (", lattices" if lattice else "")
                yield table_of(
                    f"Without normalisation: {name}",
                    [*self.heads, *spread, *compared],
                    (LOG_Z, *[change] * bool(forms)),
                    left=2,
                )

    def comparison(self, form: Form) -> Iterator[Column]:
        """Yield one combination with and without normalisation, the difference, its probability,
        and on lattices what each took.
        """
        metric, place = self.trained.metric, self.place
        plain, rough = self.system_query(form), self.system_query(form, normalised=False)
        yield plain.column(self.title(form), metric, place)
        yield rough.column("without", metric, place)
        yield numbers("change", rough.values(UNNORMALISED, place), "{:+.2f}")
        yield rough.printed("p", lambda row: probability(row.p), UNNORMALISED, place)
        for header, full in (("real-time factor", True), ("without", False)):
            if form.lattices:
                makeups = [form.of(entry, full) for entry in self.trunk.entries]
                yield figures(header, list(map(self.real_time, makeups)), 3)

    def real_time(self, makeup: SystemParts) -> float | None:
        """Return seconds of rescoring a second of speech."""
        trained = self.trained
        trees = (
            tree
            for (_, name), tree in trained.lattices.items()
            if name == self.place and find_lattice_makeup(tree, trained.hashes) == makeup
        )
        tree = next(trees, {})
        return ratio(tree.get("seconds"), tree.get("speech"))


def criteria_tables(trained: Trained) -> Iterator[Table]:
    """Yield for each trunk and each set that weights were not tuned on: cost and outcome; then the
    same without normalisation.
    """
    every = [
        TrunkTables(trained, t, place) for t in list_trunks(trained) for place in trained.judged
    ]
    yield from (tables.costs() for tables in every)
    for tables in every:
        yield from tables.unnormalised()


def is_ngram(trained: Trained, name: str) -> bool:
    """Return whether a system uses an n-gram model alone."""
    parts = trained.names.makeup(name).parts
    return len(parts) == 1 and trained.configs.get(parts[0].lm, {}).get("kind") == "ngram"


def criteria_pictures(trained: Trained) -> Iterator[Picture]:
    """Yield for each trunk perplexity over the time of training, and against the time of a step."""
    for trunk in list_trunks(trained):
        yield from time_pictures(trained, trunk)
        yield from price_pictures(trained, trunk)


def time_pictures(trained: Trained, trunk: CriteriaTrunk) -> Iterator[Picture]:
    """Yield validation perplexity over training time, one line a criterion."""
    learning = trained.learning
    curves = {entry: curve(learning.get(entry.name, ())) for entry in trunk.entries}
    curves = {entry: points for entry, points in curves.items() if len(points)}
    if len(curves) > 1:
        titles = trunk.titles
        ends = [f"{titles[entry]} {points[-1, 1]:.4g}" for entry, points in curves.items()]
        yield Picture(
            f"criteria-{trunk.key}-time",
            f"{trunk.title}: {TIME}",
            f"Validation perplexity at the end of training: {', '.join(ends)}.",
            partial(draw_curves, trunk, curves),
            wide=len(curves) > PANEL,
        )


def price_pictures(trained: Trained, trunk: CriteriaTrunk) -> Iterator[Picture]:
    """Yield perplexity against the time of a training step, one point a criterion."""
    texts = [*trained.judged, "valid"]
    ppl = {
        text: [trained.rows.value("lm", e.name, "word_ppl", text) for e in trunk.entries]
        for text in texts
    }
    text = next((text for text in texts if any(ppl[text])), "valid")
    points = {
        entry: (entry.milliseconds, value)
        for entry, value in zip(trunk.entries, ppl[text], strict=True)
        if entry.milliseconds and value and np.isfinite(entry.milliseconds)
    }
    if len(points) > 1:
        titles, subject = trunk.titles, f"word {kind_of(trained, trunk, text)} on {text}"
        prices = [f"{titles[e]} {time:.4g} ms and {y:.4g}" for e, (time, y) in points.items()]
        yield Picture(
            f"criteria-{trunk.key}-price",
            f"{trunk.title}: {subject} {PRICE}",
            f"Time of a training step and {subject}: {', '.join(prices)}.",
            partial(draw_price, trunk, points, subject),
            wide=len(points) > PANEL,
        )


def draw_curves(trunk: CriteriaTrunk, curves: Mapping, theme: Theme) -> Figure:
    """Draw one panel, or of many criteria one a family, each with the full softmax beside."""
    families: dict[str, list[Entry]] = {}
    for entry in curves:
        families.setdefault(entry.shown.panel if len(curves) > PANEL else "", []).append(entry)
    figure = Figure((6.6, 4.4) if len(families) == 1 else (11.5, 4.2))
    panels = figure.subplots(1, len(families), sharex=True, sharey=True, squeeze=False)[0]
    first = end_panel(panels[0], theme, [points[-1, 1] for points in curves.values()], 2.5)
    ends = [points[-1, 0] for points in curves.values()]
    unit, name = scale_of(max(ends))
    start = max(min(points[0, 0] for points in curves.values()) / 1.1, min(ends) / 12)
    panels[0].set_xscale("log")
    panels[0].set_xlim(start / unit, 1.1 * max(ends) / unit)
    plain_ticks(panels[0].xaxis)
    for axes, (family, entries) in zip(panels, families.items(), strict=True):
        reference = [trunk.full] if trunk.full in curves and trunk.full not in entries else []
        panel = EndPanel(axes, theme, first.top)
        for entry in (*reference, *entries):
            draw_entry(panel, trunk, entry, *(curves[entry] / (unit, 1)).T)
        panel.write()
        axes.set_title(family)
        axes.set_xlabel(f"training time ({name}, log scale)")
    panels[0].set_ylabel("validation perplexity (a token, log scale)")
    return figure


def draw_price(trunk: CriteriaTrunk, points: Mapping, subject: str, theme: Theme) -> Figure:
    """Draw a labelled point a criterion and dashed lines at that of the full softmax."""
    size = (10, 4.6) if len(points) > PANEL else (6.6, 4.4)
    figure, axes = chart(size, "milliseconds a training step", f"{subject} (log scale)")
    panel = end_panel(axes, theme, [ppl for _, ppl in points.values()], 1)
    times = sorted(time for time, _ in points.values())
    axes.set_xlim(0, 1.08 * times[-1])
    if trunk.full in points:
        color, dashed = theme.color(trunk.full.shown.look), {"linestyle": "--", "linewidth": 0.9}
        for draw, at in zip((axes.axvline, axes.axhline), points[trunk.full], strict=True):
            draw(at, color=color, alpha=0.6, **dashed)
    for entry, (time, ppl) in points.items():
        draw_entry(panel, trunk, entry, [time], y=[ppl])
    gap, slow = max((after - before, after) for before, after in pairwise(times))
    # room for the labels of the faster ones between them and the slower ones
    wide = gap > 0.45 * times[-1]
    fast = [label for label in panel.labels if wide and label[1] < slow]
    panel.write((slow - 0.86 * gap) / (1.08 * times[-1]), fast)
    panel.write(labels=[label for label in panel.labels if label not in fast])
    return figure


def draw_entry(panel: EndPanel, trunk: CriteriaTrunk, entry: Entry, x, y) -> None:
    """Draw a criterion's line in its own look with a mark at its end; that of the second and
    further models of a criterion is hollow.
    """
    twins = [twin for twin in trunk.entries if twin.criterion == entry.criterion]
    hollow = {"markerfacecolor": panel.theme.paper} if twins.index(entry) else {}
    width = 2.2 if entry.shown.panel == FULL else 1.5
    style = {"linewidth": width, "markevery": [-1], "label": entry.name}
    panel.line(entry.shown.look, trunk.titles[entry], x, y, **style | hollow)


def main(home: str, conf: str) -> None:
    """Add tables and figures to the report of `home`."""
    trained = read_trained(Path(home), Path(conf))
    tables, pictures = list(criteria_tables(trained)), list(criteria_pictures(trained))
    add_part(home, "criteria", "Output layers and training criteria", tables, pictures)


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
