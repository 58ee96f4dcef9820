"""Reads what an experiment of semantic textual similarity left behind: correlations, cosines,
models, run times, stages.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from lmtools.errors import UserError
from lmtools.report import experiment
from lmtools.report.artifacts import read_json, read_ppl
from lmtools.report.experiment import Artifact, Experiment, read_artifacts, refuse_lists
from lmtools.report.lm.experiment import models_of
from lmtools.report.lm.models import Model
from lmtools.report.names import Names
from lmtools.report.rescoring.experiment import RescoringExperiment, collect_rescoring
from lmtools.report.sts.views import Way, find_looks, find_ways, label_way, order_systems
from lmtools.report.style import Look, Style, load_style

MINI = "mini"  # the corpus whose similarity no one judged: it follows from how its pairs were made
REFERENCE = "tta"  # the system that the others are compared with
GRADES = 8  # so many distinct similarities are grades; people's means are more
SETS = ("train", "trial", "dev", "valid", "test")  # in printing order; others after them
KINDS = ("pearson", "spearman")


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
    """Results of `lmtools sts` for one system on one set: gold similarity (N,) of the pairs, the
    layers by number.
    """

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
        """The embedding layer, if it was taken."""
        return self.layers[0] if self.layers[0].number == 0 else None

    @property
    def best(self) -> Layer:
        """Return the layer that represents the system: its context, of static vectors their
        embedding.
        """
        return self.layers[-1]


@dataclass(frozen=True, kw_only=True)
class StsExperiment(Experiment):
    """All that the report of semantic textual similarity speaks of."""

    judged: Mapping[tuple[str, str], Judged]  # by (system, set), in printing order
    models: Mapping[str, Model]
    ways: Mapping[str, Way]  # how each system makes its vectors
    # what the same language models gain on lists; None where they rescored none
    rescoring: RescoringExperiment | None = None

    @cached_property
    def systems(self) -> list[str]:
        """The systems in printing order."""
        return list(self.ways)

    @cached_property
    def sets(self) -> list[str]:
        """The sets, development sets first."""
        return sorted(
            {name for _, name in self.judged},
            key=lambda name: (SETS.index(name) if name in SETS else len(SETS), name),
        )

    @property
    def test(self) -> str:
        """The set that the report speaks of where it speaks of one: the last; nothing where there
        is none.
        """
        return self.sets[-1] if self.sets else ""

    def on(self, name: str) -> dict[str, Judged]:
        """Return the results on a set, by system."""
        return {system: one for (system, text), one in self.judged.items() if text == name}

    def gold(self, name: str) -> np.ndarray:
        """Return the similarity (N,) of a set's pairs."""
        return next(iter(self.on(name).values())).gold

    def graded(self, name: str) -> bool:
        """Return whether the similarity of a set takes so few values that they are grades."""
        return len(np.unique(self.gold(name))) <= GRADES

    @cached_property
    def labels(self) -> dict[str, str]:
        """The printed name of each system."""
        return {system: label_way(way, self.names.style) for system, way in self.ways.items()}

    @cached_property
    def looks(self) -> dict[str, Look]:
        """Return the look of each system."""
        return find_looks(self.ways, self.names.style)

    def label(self, name: str) -> str:
        """Return the printed name of a system."""
        return self.labels.get(name) or super().label(name)

    def models_in(self, name: str) -> list[str]:
        """Return the language model that a system takes its vectors of."""
        return [self.ways[name].lm] if name in self.ways else super().models_in(name)

    def quantity(self, kind: str, name: str, place: str) -> float | None:
        """Also Pearson's correlation (x100) of a layer's vectors."""
        one = self.judged.get((name, place)) if kind in ("context", "embed") else None
        if layer := one and getattr(one, kind):
            value = 100 * layer.correlations["pearson"][0]
            return value if math.isfinite(value) else None
        return super().quantity(kind, name, place)

    @property
    def constructed(self) -> bool:
        """Return whether nobody judged the similarity: the corpus is MINI, or a recipe's copy of
        it.
        """
        return Path(self.corpus or "").name == MINI

    @property
    def judges(self) -> str:
        """Whose the similarity is that cosines are correlated with."""
        return "constructed similarity" if self.constructed else "similarity as people judged it"

    @property
    def of_what(self) -> str:
        """Return the end of titles: the corpus, and that its similarity is constructed."""
        constructed = ", constructed similarity" if self.constructed else ""
        return self.title + constructed

    @property
    def sizes(self) -> list[str]:
        return [f"{name}: {len(self.gold(name)):,} pairs" for name in self.sets]

    @property
    def remarks(self) -> list[str]:
        return ["No similarity was trained on."]

    @property
    def hashes(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for (system, _), one in self.judged.items():
            if one.signature.get("model"):
                found.setdefault(self.ways[system].lm, str(one.signature["model"]))
        return found


def is_sts(home: Path) -> bool:
    """Return whether directory `home` holds correlations with judgements of similarity."""
    return any(home.glob("sts/*/*.json"))


def read_sts(home: Path) -> dict[Path, dict]:
    """Read the results of `lmtools sts`, by path."""
    return {path: read_json(path) for path in sorted(home.glob("sts/*/*.json"))}


def judged_of(trees: Mapping[Path, Mapping]) -> tuple[dict[tuple[str, str], Judged], list[str]]:
    """Return the results by (system, set), and a line for each file whose pairs nobody judged.

    UserError where systems were measured on different pairs of one set.
    """
    found, dropped, first = {}, [], {}
    for path, tree in trees.items():
        if tree.get("similarity") is None:
            dropped.append(f"{path}: nobody judged the similarity of its pairs, so it is left out")
            continue
        one = found[path.parent.name, path.stem] = judgement(path, tree)
        other = first.setdefault(path.stem, one)
        if (other.digest, len(other.gold)) != (one.digest, len(one.gold)):
            raise UserError(
                f"{path}: of other pairs than {other.path}; run lmtools sts again on one of the two"
            )
    return found, dropped


def judgement(path: Path, tree: Mapping) -> Judged:
    """Parse the results in the JSON object `tree` of `path`, its layers by number."""
    try:
        gold = np.array(tree["similarity"], dtype=float)
        layers = sorted((layer(row) for row in tree["rows"]), key=lambda one: one.number)
        if not layers:
            raise ValueError("it has no layers")
        sizes = {tree["count"], gold.size, *(one.cosines.size for one in layers)}
        if (
            gold.ndim != 1
            or len(sizes) != 1
            or not all(np.isfinite(one).all() for one in (gold, *(one.cosines for one in layers)))
        ):
            raise ValueError(
                "similarities and cosines are not as many finite numbers as it has pairs"
            )
        return Judged(path, str(tree["sha256"]), dict(tree["signature"]), gold, tuple(layers))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(
            f"{path}: damaged ({error!r}); write it again with lmtools sts --out"
        ) from None


def layer(row: Mapping) -> Layer:
    """Return one row of `lmtools sts`; a coefficient that is null (all cosines alike) is NaN."""
    correlations = {}
    for kind in KINDS:
        value, low, high = (
            math.nan if number is None else float(number) for number in row[kind] or (None,) * 3
        )
        correlations[kind] = value, low, high
    return Layer(int(row["layer"]), correlations, np.array(row["cosine"], dtype=float))


ARTIFACTS = {
    "judged": Artifact(
        read_sts,
        "sts/SYSTEM/SET.json: absent, so there is nothing to say of similarity (`lmtools sts --out`"
        " writes them)",
    ),
    "learning": experiment.LEARNING,
    "speed": experiment.SPEED,
    "stages": experiment.STAGES,
    "configs": experiment.CONFIGS,
    "ppl": Artifact(read_ppl),
    "training": experiment.TRAINING,
}


def collect_sts(
    home: Path,
    nbests: Sequence[str] = (),
    title: str | None = None,
    command: str = "lmtools report",
    style: Style | None = None,
) -> StsExperiment:
    """Collect the experiment of semantic textual similarity in directory `home`, and what the same
    language models rescored: lists from the files `nbests` (default: data/*/nbest.jsonl beside it).
    """
    rescoring = None
    if any(home.glob("rescore/*/*.txt")):
        rescoring = collect_rescoring(home, nbests, title, command, style)
    else:
        refuse_lists(nbests, "semantic textual similarity without rescored texts", "sts")
    parts, absent = read_artifacts(home, ARTIFACTS)
    judged, dropped = judged_of(parts["judged"])
    names = Names(style or load_style())
    ways = find_ways({system: one.signature for (system, _), one in judged.items()})
    order = order_systems(ways, names.style)
    parts["judged"] = dict(sorted(judged.items(), key=lambda item: order.index(item[0][0])))
    return StsExperiment(
        home=home,
        command=command,
        names=names,
        ways={system: ways[system] for system in order},
        given_title=title,
        models=models_of(names, parts),
        rescoring=rescoring,
        absent=(*absent, *dropped),
        **parts,
    )
