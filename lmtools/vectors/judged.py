"""Pairs of sentences whose similarity people judged, and how vectors agree with them: what `lmtools
sts` wrote, as a report sees it, and its rows of figures.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lmtools.base.errors import UserError
from lmtools.report.rows import FigureRow
from lmtools.report.style import Look, Names, Style
from lmtools.vectors.similarity import compare_correlations

MASKED = "masked"  # a view, and the kind of a model that has it
REFERENCE = "tta"  # the system that the others are compared with
GRADES = 8  # so many distinct similarities are grades; people's means are more
SETS = ("train", "trial", "dev", "valid", "test")  # in printing order; others after them
KINDS = ("pearson", "spearman")


class Way(NamedTuple):
    """Way of making vectors: `views`, and whether the input is intact where others mask."""

    lm: str
    views: tuple[str, ...] = ()
    intact: bool = False


@dataclass(frozen=True)
class Layer:
    """Results of the vectors of one layer: its number (0: the embedding layer), correlations by
    kind, the cosine of each pair (N,).

    Correlations are a coefficient and the ends of its 95% interval in [-1, 1], NaN where they are
    not defined.
    """

    number: int
    correlations: Mapping[str, tuple[float, float, float]]
    cosines: np.ndarray


@dataclass(frozen=True)
class Judged:
    """Results of a system on a set: gold similarity (N,) of pairs, layers by number."""

    path: Path
    digest: str
    signature: Mapping
    gold: np.ndarray
    layers: tuple[Layer, ...]

    @property
    def context(self) -> Layer | None:
        """The last layer; None of static vectors, which have the embedding layer only."""
        return self.layers[-1] if self.layers[-1].number else None

    @property
    def embed(self) -> Layer | None:
        return self.layers[0] if self.layers[0].number == 0 else None

    @property
    def best(self) -> Layer:
        """Return the layer that stands for the system: its context, else its embedding."""
        return self.layers[-1]

    @property
    def pearsons(self) -> dict[int, float]:
        return {layer.number: 100 * layer.correlations["pearson"][0] for layer in self.layers}

    def hundredfold(self, part: str, kind: str = "pearson") -> float | None:
        """Return a correlation times 100 of a part: context, embed or best; None without one."""
        layer: Layer | None = getattr(self, part)
        return layer and 100 * layer.correlations[kind][0]


@dataclass(frozen=True, kw_only=True)
class JudgedPairs:
    """Results by (system, set) in printing order, and how each system makes its vectors."""

    names: Names
    results: Mapping[tuple[str, str], Judged]
    ways: Mapping[str, Way]

    @cached_property
    def sets(self) -> list[str]:
        return sorted(
            {name for _, name in self.results},
            key=lambda name: (SETS.index(name) if name in SETS else len(SETS), name),
        )

    @property
    def test(self) -> str:
        """The set that stands for all: the last; nothing where there is none."""
        return self.sets[-1] if self.sets else ""

    def on(self, name: str) -> dict[str, Judged]:
        return {system: judged for (system, text), judged in self.results.items() if text == name}

    def gold(self, name: str) -> np.ndarray:
        """Return the similarity (N,) of a set's pairs."""
        return next(iter(self.on(name).values())).gold

    def graded(self, name: str) -> bool:
        """Return whether the similarity of a set takes so few values that they are grades."""
        return len(np.unique(self.gold(name))) <= GRADES

    @property
    def deep(self) -> dict[str, Judged]:
        """Return the systems of which several layers were taken on the last set."""
        results = self.on(self.test).items()
        return {system: judged for system, judged in results if len(judged.layers) > 1}

    @cached_property
    def labels(self) -> dict[str, str]:
        return {system: label_way(way, self.names.style) for system, way in self.ways.items()}

    @cached_property
    def looks(self) -> dict[str, Look]:
        return find_looks(self.ways, self.names.style)

    @property
    def sizes(self) -> list[str]:
        return [f"{name}: {len(self.gold(name)):,} pairs" for name in self.sets]

    @property
    def remarks(self) -> list[str]:
        return ["No similarity was trained on."]

    @property
    def hashes(self) -> Mapping[str, str]:
        hashes: dict[str, str] = {}
        for (system, _), judged in self.results.items():
            if judged.signature.get("model"):
                hashes.setdefault(self.ways[system].lm, str(judged.signature["model"]))
        return hashes

    def rows(self) -> Iterator[FigureRow]:
        """Yield the correlations (x100) of each layer with their intervals; p is that of the
        difference to the reference's context on the last set. Then the mean cosine at each grade.
        """
        for (name, place), judged in self.results.items():
            reference = self.results.get((REFERENCE, place)) if place == self.test else None
            for layer in judged.layers:
                for kind in KINDS:
                    value, low, high = (100 * number for number in layer.correlations[kind])
                    tested = kind == "pearson" and layer is judged.best and reference
                    p = williams_p(reference, judged) if tested else None
                    ends = (low, high) if math.isfinite(low + high) else (None, None)
                    yield FigureRow("vectors", name, place, kind, *(value, *ends, p, layer.number))
            if self.graded(place):
                for grade in np.unique(judged.gold).tolist():
                    mean = float(judged.best.cosines[judged.gold == grade].mean())
                    yield FigureRow("grade", name, place, "cosine", value=mean, at=grade)


def collect_pairs(
    home: Path, trees: Mapping[tuple[str, str], Mapping], names: Names
) -> tuple[JudgedPairs, list[str]]:
    """Collect the `trees` of `lmtools sts` in `home`, by (system, set), and a line for each file
    that nobody judged; UserError for different pairs of one set.
    """
    results, dropped, first = {}, [], {}
    for (system, name), tree in trees.items():
        path = home / f"sts/{system}/{name}.json"
        if tree.get("similarity") is None:
            dropped.append(f"{path}: nobody judged the similarity of its pairs, so it is left out")
            continue
        judged = results[system, name] = parse_results(path, tree)
        other = first.setdefault(name, judged)
        if (other.digest, len(other.gold)) != (judged.digest, len(judged.gold)):
            raise UserError(
                f"{path}: of other pairs than {other.path}; run lmtools sts again on one of the two"
            )
    ways = find_ways({system: judged.signature for (system, _), judged in results.items()})
    order = order_systems(ways, names.style)
    arranged = dict(sorted(results.items(), key=lambda item: order.index(item[0][0])))
    ways = {system: ways[system] for system in order}
    return JudgedPairs(names=names, results=arranged, ways=ways), dropped


def parse_results(path: Path, tree: Mapping) -> Judged:
    try:
        gold = np.array(tree["similarity"], dtype=float)
        layers = sorted(map(parse_layer, tree["rows"]), key=lambda layer: layer.number)
        if not layers:
            raise ValueError("it has no layers")
        columns = [gold, *(layer.cosines for layer in layers)]
        sizes = {tree["count"], *(column.size for column in columns)}
        finite = all(np.isfinite(column).all() for column in columns)
        if gold.ndim != 1 or len(sizes) != 1 or not finite:
            raise ValueError(
                "similarities and cosines are not as many finite numbers as it has pairs"
            )
        return Judged(
            path, str(tree["sha256"]), dict(tree["signature"]), gold, layers=tuple(layers)
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(
            f"{path}: damaged ({error!r}); write it again with lmtools sts --out"
        ) from None


def parse_layer(row: Mapping) -> Layer:
    """Parse one row of `lmtools sts`; a coefficient that is null (all cosines alike) is NaN."""
    correlations = {}
    for kind in KINDS:
        value, low, high = (
            math.nan if number is None else float(number) for number in row[kind] or (None,) * 3
        )
        correlations[kind] = value, low, high
    return Layer(int(row["layer"]), correlations, np.array(row["cosine"], dtype=float))


def williams_p(reference: Judged, judged: Judged) -> float | None:
    """Return p of equal correlations; None of the reference and where the test is not defined."""
    if judged is reference:
        return None
    try:
        return compare_correlations(judged.gold, reference.best.cosines, judged.best.cosines)[0]
    except UserError:  # cosines that are all alike, or next to no pairs
        return None


def find_ways(signatures: Mapping[str, Mapping[str, str]]) -> dict[str, Way]:
    """Return each system's way of making vectors, by signature. Systems of one model belong
    together: named as the one of the plain mean, else by kind, else alone.
    """
    models: dict[tuple, list[str]] = {}
    for system, signature in signatures.items():
        models.setdefault((signature.get("lm"), signature.get("model")), []).append(system)
    kinds, ways = [kind for kind, _ in models], {}
    for (kind, _), systems in models.items():
        views = {system: read_views(signatures[system]) for system in systems}
        plain = next((system for system in systems if not views[system]), None)
        masks = kind == MASKED or any(MASKED in names for names in views.values())
        for system in systems:
            lm = plain or (kind if kind and kinds.count(kind) == 1 else system)
            ways[system] = Way(lm, views[system], masks and not views[system])
    return ways


def read_views(signature: Mapping[str, str]) -> tuple[str, ...]:
    """Return what is unusual; usual is the mean over the tokens of an intact input."""
    pool = signature.get("pool", "mean")
    choices = {MASKED: MASKED in signature, pool: pool != "mean"}
    choices["boundaries"] = "boundaries" in signature
    return tuple(name for name, holds in choices.items() if holds)


def label_way(way: Way, style: Style) -> str:
    views = [style.views[view].label if view in style.views else view for view in way.views]
    form = "intact" if way.intact else ", ".join(views)
    return " ".join(filter(None, (Names(style).short(way.lm), form)))


def order_systems(ways: Mapping[str, Way], style: Style) -> list[str]:
    """Return systems as the experiment lists them, others in the Style's order of LMs and views."""
    listed = list(style.plan.vectors)
    views = [MASKED, "", *(view for view in style.views if view != MASKED)]

    def place(system):
        lm, chosen, _ = ways[system]
        first = chosen[0] if chosen else ""
        rank = views.index(first) if first in views else len(views)
        known = listed.index(system) if system in listed else len(listed)
        return known, style.place(lm), lm, rank, chosen, system

    return sorted(ways, key=place)


def find_looks(ways: Mapping[str, Way], style: Style) -> dict[str, Look]:
    """Find each system's look: the colour of its LM, marker and line of its view."""
    of_lms, looks = Names(style).looks({way.lm for way in ways.values()}), {}
    for system, way in ways.items():
        look = of_lms[way.lm]
        view = next((style.views[view] for view in way.views if view in style.views), look)
        looks[system] = replace(look, marker=view.marker, line=view.line, hollow=bool(way.views))
    return looks
