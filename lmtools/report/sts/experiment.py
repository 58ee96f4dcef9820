"""Reads what an experiment of semantic textual similarity left behind: correlations, cosines,
models, run times, stages.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from lmtools.corpus import Header, read_header
from lmtools.errors import UserError
from lmtools.report.artifacts import numbered, read_json, read_manifest
from lmtools.report.lm.experiment import read_lms
from lmtools.report.lm.models import Model
from lmtools.report.names import STATIC, VIEWS, viewed
from lmtools.report.rescoring.experiment import default_title

SPEED, TRAINING = "bench/speed.json", "train.bin"
GRADES = 8  # so many distinct similarities are grades; people's means are more
# models of the paper's tables in their order; the user's stand between
FIRST, LAST = ("causal", "lstm", "masked"), ("tta", *STATIC)
SETS = ("train", "trial", "dev", "valid", "test")  # in printing order; others after them
KINDS = ("pearson", "spearman")


@dataclass(frozen=True)
class Layer:
    """What the vectors of one layer gave: its number (0: the embedding layer), correlations by
    kind, the cosine of each pair (N,).

    Correlations are a coefficient and the ends of its 95% interval in [-1, 1], NaN where they are
    not defined.
    """

    number: int
    correlations: Mapping[str, tuple[float, float, float]]
    cosines: np.ndarray


@dataclass(frozen=True)
class Judged:
    """What `lmtools sts` wrote of one system on one set: gold similarity (N,) of the pairs, the
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
        """What the system stands for: its context, of static vectors their embedding."""
        return self.layers[-1]


@dataclass(frozen=True)
class StsExperiment:
    """All that the report of semantic textual similarity speaks of; what is absent is named in
    `absent`.
    """

    home: Path
    title: str
    corpus: str | None  # the recipe's option
    judged: Mapping[tuple[str, str], Judged]  # by (system, set), in printing order
    models: Mapping[str, Model]
    speed: Mapping | None
    stages: Sequence[Mapping]
    training: Header | None
    absent: tuple[str, ...]

    @cached_property
    def systems(self) -> list[str]:
        """The systems in the order of the paper's tables."""
        return list(dict.fromkeys(system for system, _ in self.judged))

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
        """What was measured on a set, by system."""
        return {system: one for (system, text), one in self.judged.items() if text == name}

    def gold(self, name: str) -> np.ndarray:
        """The similarity (N,) of a set's pairs."""
        return next(iter(self.on(name).values())).gold

    def graded(self, name: str) -> bool:
        """Whether the similarity of a set takes so few values that they are grades."""
        return len(np.unique(self.gold(name))) <= GRADES


ABSENT = {
    "judged": (
        "sts/SYSTEM/SET.json: absent, so there is nothing to say of similarity (`lmtools sts --out`"
        " writes them)"
    ),
    "learning": (
        "lm/LM/metrics.jsonl: absent, so there is nothing to say of trainings (`lmtools train`"
        " writes them)"
    ),
    "speed": (
        f"{SPEED}: absent, so there is no figure of run time (`lmtools bench score --out`"
        " writes it)"
    ),
    "stages": (
        "stages/N.json: absent, so it is not known how the time divides (the recipe's run.sh writes"
        " them)"
    ),
}


def is_sts(home: Path) -> bool:
    """Whether directory `home` holds correlations with judgements of similarity."""
    return any(home.glob("sts/*/*.json"))


def collect_sts(home: Path, title: str | None = None) -> StsExperiment:
    """The experiment of semantic textual similarity in directory `home`."""
    if not home.is_dir():
        raise UserError(
            f"{home}: no such directory; give the experiment's directory, which run.sh calls exp"
        )
    stages = [read_manifest(path) for path in numbered(home / "stages")]
    judged, dropped = read_judged(home)
    models = read_lms(home, {})
    speed = read_json(home / SPEED, "speed") if (home / SPEED).exists() else None
    learning = [model for model in models.values() if model.lines]
    parts = {"judged": judged, "learning": learning, "speed": speed, "stages": stages}
    absent = [f"{home}/{ABSENT[name]}" for name, part in parts.items() if not part]
    corpus = next(
        (stage["options"]["corpus"] for stage in stages if stage.get("options", {}).get("corpus")),
        None,
    )
    training = read_header(home / TRAINING)[0] if (home / TRAINING).exists() else None
    name = title or default_title(home, stages)
    return StsExperiment(
        home, name, corpus, judged, models, speed, stages, training, (*absent, *dropped)
    )


def read_judged(home: Path) -> tuple[dict[tuple[str, str], Judged], list[str]]:
    """What was measured, by (system, set) in printing order, and a line for each file whose pairs
    nobody judged.

    UserError where systems were measured on different pairs of one set.
    """
    paths = sorted(home.glob("sts/*/*.json"))
    order = in_order(path.parent.name for path in paths)
    found, dropped, first = {}, [], {}
    for path in sorted(paths, key=lambda path: (order.index(path.parent.name), path.stem)):
        tree = read_json(path)
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
    """What the JSON object `tree` of `path` says, its layers by number."""
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
    """One row of `lmtools sts`; a coefficient that is null (all cosines alike) is NaN."""
    correlations = {}
    for kind in KINDS:
        value, low, high = (
            math.nan if number is None else float(number) for number in row[kind] or (None,) * 3
        )
        correlations[kind] = value, low, high
    return Layer(int(row["layer"]), correlations, np.array(row["cosine"], dtype=float))


def in_order(systems: Iterable[str]) -> list[str]:
    """Systems in the order of the paper's tables: left-to-right, masked and the user's models,
    T-TA, then static vectors.

    The view that masks each token stands before the plain one, the others after it.
    """
    views = ["-masked", "", *(view for view in VIEWS if view != "-masked")]

    def place(system):
        lm, view = viewed(system)
        rank = (
            FIRST.index(lm)
            if lm in FIRST
            else len(FIRST) + 1 + LAST.index(lm)
            if lm in LAST
            else len(FIRST)
        )
        return rank, lm, views.index(view)

    return sorted(set(systems), key=place)
