"""The figures of an experiment as tidy rows, out of which tables and figures are made and which
`lmtools report --csv` writes.
"""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from lmtools.base.atomic import atomic_text
from lmtools.base.doors import open_door
from lmtools.evaluate.metrics import METRICS, ErrorRate
from lmtools.evaluate.significance import holm
from lmtools.report.lists import RescoredLists
from lmtools.report.measure import LENGTHS, Measured, chance
from lmtools.report.models import Model
from lmtools.report.style import FIRST, ORACLE

ERRORS = ("substitutions", "deletions", "insertions")
CHANGE, RELATIVE, TUNED = "change", "relative change", "change, tuned first pass"
BY_GROUP = {"bootstrap": "change, groups drawn", "flips": "change, groups exchanged"}
HOLM = "change, Holm"  # p of those that were not planned, corrected together; none of a planned one
UNNORMALISED = "change, normalised"  # from the same with normalised scores
PPL = (
    *("word_ppl", "subword_ppl", "bits_per_char", "sentence_ppl_mean", "sentence_ppl_median"),
    *("log_prob", "oov", "sentences", "words", "tokens"),
)
WRITING = "writing"  # errors of blanks, apostrophes, hyphens and digits alone
LM_KINDS = ("lm", "learning")  # kinds of rows whose names are those of language models
LATTICE = ("lattices", "arcs", "rescored_arcs", "speech", "seconds")


class FigureRow(NamedTuple):
    """One figure: its kind, system or language model, set, quantity, value, 95% interval, p, place
    on an axis, printed name and language models.
    """

    kind: str
    name: str
    set: str
    quantity: str
    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    at: float | None = None
    label: str = ""
    lms: str = ""  # parted by blanks


class FigureRows:
    """FigureRows in the order of printing, to be found by what they are of."""

    def __init__(self, rows: Iterable[FigureRow]):
        self.every = [row for row in rows if row.value is not None and math.isfinite(row.value)]
        self.by_key = {(*row[:4], row.at): row for row in self.every}

    def find(
        self, kind: str, name: str, quantity: str, place: str = "", at: float | None = None
    ) -> FigureRow | None:
        """Return the row of a quantity; None where it was not measured."""
        return self.by_key.get((kind, name, place, quantity, at))

    def value(self, kind: str, name: str, quantity: str, place: str = "", at=None) -> float | None:
        """Return the value of a quantity; None where it was not measured."""
        row = self.find(kind, name, quantity, place, at=at)
        return row and row.value

    def write(self, path) -> None:
        """Write them as CSV, a line a row under a line of names; what is not known is empty."""
        with atomic_text(path, follow=False) as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerows([FigureRow._fields, *self.every])

    @classmethod
    def read(cls, path) -> "FigureRows":
        """Read what `write` wrote."""
        with open(path, newline="") as stream:
            _, *lines = csv.reader(stream)
        numbers = ([float(cell) if cell else None for cell in line[4:9]] for line in lines)
        return cls(
            FigureRow(*line[:4], *values, *line[9:])
            for line, values in zip(lines, numbers, strict=True)
        )


def rows_of(experiment) -> Iterator[FigureRow]:
    """Yield the rows of all parts of an Experiment, with printed names and language models."""
    for row in list_rows(experiment):
        if row.kind in LM_KINDS:
            yield row._replace(label=experiment.names.lms.label(row.name), lms=row.name)
        elif row.kind == "stage":
            yield row
        else:
            lms = " ".join(experiment.models_in(row.name))
            yield row._replace(label=experiment.label(row.name), lms=lms)


def list_rows(experiment) -> Iterator[FigureRow]:
    if experiment.lists:
        yield from rows_of_lists(experiment.lists)
    if experiment.pairs:
        yield from experiment.pairs.rows()
    yield from rows_of_models(experiment.models, experiment.ppl)
    for stage in experiment.stages:
        yield FigureRow(
            "stage", str(stage.get("stage", "")), "", "seconds", value=stage.get("seconds")
        )


def rows_of_lists(lists: RescoredLists) -> Iterator[FigureRow]:
    """Yield the scores of systems on sets, their weights, and what rescoring lattices took."""
    for measured in lists.sets:
        yield from rows_of_set(measured)
        yield from rows_of_holm(measured, lists.plan.planned)
        yield from rows_of_depths(measured)
    for measured in lists.judged:
        yield from rows_of_unnormalised(lists, measured)
    for name, system in lists.systems.items():
        weights = system.weights
        for feature, value in weights.features.items() if weights else ():
            yield FigureRow("weight", name, "", feature, value=value)
        curves = (weights.search.get("curves") or {}) if weights else {}
        for feature, curve in curves.items():
            low, high = curve["flat"]
            yield FigureRow("scale", name, "", feature, value=curve["chosen"], low=low, high=high)
            for scale, score in curve["points"]:
                yield FigureRow(
                    "scale", name, "", f"{weights.metric}, {feature}", value=score, at=scale
                )
    for (name, place), tree in lists.scored.items():
        key = ("scored", name, place)
        yield FigureRow(*key, tree["metric"], tree.get("score"), *(tree.get("interval") or ()))
        for quantity in (*ERRORS, "length"):
            yield FigureRow(*key, quantity, tree.get(quantity))
        for part in tree.get("by label", ()):
            yield FigureRow(*key, part["name"], part.get("score"))
    for measured in lists.sets if lists.glossary else ():
        rows_of_phrases = open_door("phrases", "report:rows_of_phrases", "--words")
        yield from rows_of_phrases(measured, lists.glossary)
    for (name, place), held in lists.networks.items():
        yield from held.rows(name, place)
    for (name, place), tree in lists.lattices.items():
        for quantity in LATTICE:
            yield FigureRow("lattice", name, place, quantity, value=tree[quantity])
        for quantity, value in (tree.get("approximation") or {}).items():
            yield FigureRow("lattice", name, place, quantity, value=value)


def rows_of_set(measured: Measured) -> Iterator[FigureRow]:
    """Yield the score of every system on a set with its interval, its errors, and its change to the
    first pass; p is that of the metric's first test, of the change that of the bootstrap.
    """
    metric, place = measured.refs.metric, measured.sample.name
    results = {**measured.results, **measured.unnormalised}
    first, tuned = results[FIRST].score, results.get(measured.tuned)
    for name, result in results.items():
        key, bootstrap = ("system", name, place), result.bootstrap
        tests = [None, None] if name in (FIRST, ORACLE) else [result.test, bootstrap]
        chances = [test and test.p for test in tests]
        ends = (bootstrap and bootstrap.score_interval) or (None, None)
        yield FigureRow(*key, metric, result.score, *ends, chances[0])
        if isinstance(METRICS[metric], ErrorRate):
            counts = result.statistics.sum(0)[:3].tolist()
            for quantity, count in zip(ERRORS, counts, strict=True):
                yield FigureRow(*key, quantity, count)
            yield FigureRow(*key, WRITING, result.writing)
        if result.gains and name not in (FIRST, ORACLE):
            for quantity in ("better", "worse"):
                yield FigureRow(*key, f"utterances {quantity}", getattr(result.gains, quantity))
            for third, (before, after) in enumerate(result.gains.thirds, 1):
                yield FigureRow("third", name, place, f"{metric}, first pass", before, at=third)
                yield FigureRow("third", name, place, metric, after, at=third)
        if bootstrap and name != FIRST:
            change = result.score - first
            yield FigureRow(*key, CHANGE, change, p=chances[1])
            relative = 100 * (result.score / first - 1) if first else None
            yield FigureRow(*key, RELATIVE, relative)
            if tuned and result.beyond is not None and name != ORACLE:
                yield FigureRow(
                    "system", name, place, TUNED, value=result.score - tuned.score, p=result.beyond
                )
            if result.groups and name != ORACLE:
                for test, quantity in BY_GROUP.items():
                    yield FigureRow(*key, quantity, change, p=getattr(result.groups, f"{test}_p"))


def rows_of_holm(measured: Measured, planned: Sequence[str] | None) -> Iterator[FigureRow]:
    """Yield Holm's p of the first test of each system that is not `planned`; None: of no system."""
    tests = {
        name: result.test.p
        for name, result in measured.results.items()
        if result.test and name not in (FIRST, ORACLE) and planned is not None
        if result.test.p is not None
    }
    others = [name for name in tests if name not in (planned or ())]
    chances = dict(zip(others, holm([tests[name] for name in others]), strict=True))
    for name in tests:
        change = measured.results[name].score - measured.results[FIRST].score
        yield FigureRow(
            "system", name, measured.sample.name, HOLM, value=change, p=chances.get(name)
        )


def rows_of_unnormalised(lists: RescoredLists, measured: Measured) -> Iterator[FigureRow]:
    """Yield the change of each system of unnormalised scores from the same of normalised ones."""
    makeup, place = lists.names.makeup, measured.sample.name
    systems = {makeup(name): result for name, result in measured.results.items()}
    for name, rough in measured.unnormalised.items():
        if plain := systems.get(makeup(name).normal):
            p, change = chance(measured.refs, rough, plain).p, rough.score - plain.score
            yield FigureRow("system", name, place, UNNORMALISED, change, p=p)


def rows_of_depths(measured: Measured) -> Iterator[FigureRow]:
    """Yield the scores by list depth and by utterance length, at its class's least words."""
    metric, place = measured.refs.metric, measured.sample.name
    for depth, score in enumerate(measured.oracle.tolist(), 1):
        yield FigureRow("depth", ORACLE, place, metric, value=score, at=depth)
    for name, curve in measured.by_depth.items():
        for depth, score in zip(measured.depths, curve, strict=True):
            yield FigureRow("depth", name, place, metric, value=score, at=depth)
    for name in measured.results:
        for (low, _), score in zip(LENGTHS, measured.by_length(name), strict=True):
            yield FigureRow("length", name, place, metric, value=score, at=low)


def rows_of_models(
    models: Mapping[str, Model], ppl: Mapping[tuple[str, str], Mapping]
) -> Iterator[FigureRow]:
    """Yield what language models are and took, their learning curves and their perplexities."""
    for name, model in models.items():
        for quantity, value in model.quantities.items():
            yield FigureRow("lm", name, "", quantity, value=value)
        for line in model.lines:
            for key in ("train", "valid"):
                loss = line.get(f"{key}_loss")
                yield FigureRow("learning", name, key, "loss", value=loss, at=line["step"])
    for (name, place), tree in ppl.items():
        for quantity in PPL:
            yield FigureRow("lm", name, place, quantity, value=tree.get(quantity))
        for quantity in ("mean", "sd"):
            value = (tree.get("log_normaliser") or {}).get(quantity)
            yield FigureRow("lm", name, place, f"log Z {quantity}", value=value)
