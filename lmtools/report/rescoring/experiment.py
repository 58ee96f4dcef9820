"""Reads what an experiment that rescores left behind: lists, rescored texts, weights, perplexities,
learning curves, speed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from lmtools.evaluate import METRICS
from lmtools.evaluate.metrics import ErrorRate
from lmtools.evaluate.significance import RESAMPLES
from lmtools.report import experiment
from lmtools.report.artifacts import read_by_set, read_models
from lmtools.report.experiment import Artifact, Experiment, read_artifacts
from lmtools.report.names import NOTHING, Names, SystemParts
from lmtools.report.rescoring.browse import browser_data
from lmtools.report.rescoring.makeup import find_lattice_makeup, find_makeups
from lmtools.report.rescoring.measure import SEED, Measured, measure
from lmtools.report.rescoring.samples import (
    Sample,
    System,
    find_lists,
    judged,
    keep,
    read_samples,
    read_systems,
)
from lmtools.report.shapes import AMOUNT, ANY, NUMBER, TEXT
from lmtools.report.style import Style, load_style
from lmtools.rescoring import Weights, set_hash

LATTICE_SHAPE = {
    **dict.fromkeys(("lattices", "arcs", "rescored_arcs", "speech", "seconds"), AMOUNT),
    "approximation?": {ANY: NUMBER},
    "lms?": {ANY: TEXT},
    "normalise?": TEXT,
    "signatures?": {ANY: {ANY: TEXT}},
}


def read_lattices(home: Path) -> dict[tuple[str, str], Mapping]:
    """Read the reports of `lmtools lattice rescore --report`, by (system, set)."""
    return read_by_set(home, "lattice", LATTICE_SHAPE)


ARTIFACTS = {
    "systems": Artifact(
        read_systems,
        "rescore/SYSTEM/SET.txt: absent, so there are no rescored systems (`lmtools rescore` writes"
        " them)",
    ),
    "ppl": experiment.PPL,
    "learning": experiment.LEARNING,
    "speed": experiment.SPEED,
    "lattices": Artifact(read_lattices),
    "stages": experiment.STAGES,
    "models": Artifact(
        read_models,
        "score/LM/SET.scores: absent, so no model hashes are given (`lmtools score` writes them)",
    ),
    "configs": experiment.CONFIGS,
    "training": experiment.TRAINING,
}


@dataclass(frozen=True, kw_only=True)
class RescoringExperiment(Experiment):
    """All that the report of rescored lists and lattices speaks of."""

    metric: str  # that weights were tuned to, a key of METRICS
    samples: tuple[Sample, ...]
    systems: Mapping[str, System]
    # by (system, set): what rescoring lattices took and gave
    lattices: Mapping[tuple[str, str], Mapping]
    models: Mapping[str, str]  # language model -> hash, from the headers of its scores

    contents = "these tables and figures, and every utterance"

    @cached_property
    def sets(self) -> list[Measured]:
        """Every set with every system's score."""
        return measure(self.home, self.samples, self.systems, self.metric)

    @property
    def judged(self) -> list[Measured]:
        """The sets that weights were not tuned on; all, if there are no others."""
        names = {sample.name for sample in judged(self.samples)}
        return [one for one in self.sets if one.sample.name in names]

    def lattice_makeup(self, system: str) -> SystemParts:
        """Return the language models rescored into the lattices of a system, by the report in
        `lattices`.
        """
        tree = next(tree for (name, _), tree in self.lattices.items() if name == system)
        return find_lattice_makeup(tree, self.models)

    def quantity(self, kind: str, name: str, place: str) -> float | None:
        """Also the score of a system."""
        if kind != "score":
            return super().quantity(kind, name, place)
        found = (one for one in self.sets if one.sample.name == place)
        results = next(({**one.results, **one.unnormalised} for one in found), {})
        return results[name].score if name in results else None

    @property
    def weights(self) -> list[Weights]:
        """Return the weights of all tuned systems."""
        return [system.weights for system in self.systems.values() if system.weights]

    @property
    def metric_label(self) -> str:
        """The metric's printed name with its unit."""
        measure = METRICS[self.metric]
        return f"{measure.title} %" if isinstance(measure, ErrorRate) else measure.title

    @property
    def sizes(self) -> list[str]:
        return [
            f"weights tuned on {size(sample)}" if sample.tuned else size(sample)
            for sample in sorted(self.samples, key=lambda sample: sample.tuned)
        ]

    @property
    def remarks(self) -> list[str]:
        crossed = dict.fromkeys(
            f"Weights tuned on {one.dev.path} are {one.folds.describe()}: each of its"
            f" {one.dev.utterances:,} utterances is chosen for by weights that did not see it."
            for one in self.weights
            if one.folds
        )
        return [f"Metric: `{METRICS[self.metric].signature}`.", *crossed]

    @property
    def hashes(self) -> Mapping[str, str]:
        return self.models

    @property
    def draws(self) -> list[str]:
        """The seeds of tuning and of the bootstraps."""
        seeds = {one.search["seed"] for one in self.weights if "seed" in one.search}
        tuning = f"tuning seed {', '.join(map(str, sorted(seeds)))}" if seeds else ""
        return [tuning, f"bootstrap of {RESAMPLES:,} resamples, seed {SEED}", *self.sacre_draws]

    @property
    def sacre_draws(self) -> list[str]:
        """Return a line on the draws of sacrebleu's paired bootstrap, where it was run."""
        results = [result for measured in self.judged for result in measured.results.values()]
        return [
            f"p (sacreBLEU) by sacreBLEU's paired bootstrap of {test.resamples:,} resamples, seed"
            f" {test.seed}"
            for test in [result.sacre for result in results if result.sacre][:1]
        ]

    def browsed(self) -> dict:
        return browser_data(self.sets, self.names)


def size(sample: Sample) -> str:
    """Name and sizes of a set."""
    depths = [len(nbest.hyps) for nbest in sample.nbests]
    words = sum(len(ref.split()) for ref in sample.refs.values())
    lists = f"lists of up to {max(depths)} (mean {np.mean(depths):.1f})"
    return f"{sample.name}: {len(depths):,} utterances, {words:,} reference words, {lists}"


def read_names(home: Path, style: Style | None = None) -> Names:
    """Read the names of the systems in directory `home`, for those who print of them alone."""
    return name_systems(read_systems(home), read_models(home), (), style)


def name_systems(
    systems: Mapping[str, System],
    models: Mapping[str, str],
    samples: Sequence[Sample],
    style: Style | None,
) -> Names:
    """Return the names of systems by what their weights say; `samples` tell lists of the first pass
    from lists of lattices where weights of older versions do not.
    """
    weights = {name: one.weights for name, one in systems.items() if one.weights}
    older = any(one.system is None for one in weights.values())
    lists = {set_hash(sample.nbests) for sample in samples if older}
    return Names(style or load_style(), find_makeups(weights, models, lists))


def arrange(found: Mapping, names: Names) -> dict:
    """Return a mapping by name, or by (name, set), in printing order."""
    name_of = {key: key if isinstance(key, str) else key[0] for key in found}
    order = names.ordered(set(name_of.values()))
    return {key: found[key] for key in sorted(found, key=lambda key: order.index(name_of[key]))}


def collect_rescoring(
    home: Path,
    nbests: Sequence[str] = (),
    title: str | None = None,
    command: str = "lmtools report",
    style: Style | None = None,
) -> RescoringExperiment:
    """Collect the experiment in directory `home`, its lists from the files `nbests` (default:
    data/*/nbest.jsonl beside it).
    """
    parts, absent = read_artifacts(home, ARTIFACTS)
    paths = [Path(path) for path in nbests] or find_lists(home)
    samples, dropped = read_samples(paths, parts["systems"])
    names = name_systems(parts["systems"], parts["models"], samples, style)
    systems = {
        name: replace(keep(one, samples), makeup=names.systems.get(name, NOTHING))
        for name, one in arrange(parts.pop("systems"), names).items()
    }
    for name in ("ppl", "learning", "models", "configs"):
        parts[name] = arrange(parts[name], names.lms)
    parts["lattices"] = arrange(parts["lattices"], names)
    return RescoringExperiment(
        home=home,
        command=command,
        names=names,
        given_title=title,
        metric=next((one.weights.metric for one in systems.values() if one.weights), "wer"),
        samples=samples,
        systems=systems,
        absent=(*absent, *dropped),
        **parts,
    )
