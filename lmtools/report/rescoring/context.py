"""What tables, figures and the page are made from, and the lines under every table that say so."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lmtools import __version__
from lmtools.evaluate import METRICS
from lmtools.evaluate.metrics import ErrorRate
from lmtools.evaluate.significance import RESAMPLES
from lmtools.report.artifacts import trained_on
from lmtools.report.names import CE, LATTICE, summed
from lmtools.report.rescoring.experiment import Experiment, Sample
from lmtools.report.rescoring.measure import SEED, Measured, Result

NONE = "-"  # in cells without a value
LINES, ROWS = 12, 30  # that one figure can hold


@dataclass(frozen=True)
class Report:
    """What the tables, figures and the page are made of; `command` is the call that makes them."""

    experiment: Experiment
    sets: Sequence[Measured]
    command: str

    contents = "these tables and figures, and every utterance"

    @property
    def judged(self) -> list[Measured]:
        """The sets that weights were not tuned on."""
        return [one for one in self.sets if one.sample in self.experiment.judged]

    @property
    def metric(self) -> str:
        """The metric's printed name with its unit."""
        measure = METRICS[self.experiment.metric]
        return f"{measure.title} %" if isinstance(measure, ErrorRate) else measure.title

    def legible(self, names: Iterable[str], most: int = LINES) -> list[str]:
        """Those of the systems or language models `names` that a figure shows: all, unless they are
        more than `most`.

        Then it lacks those of language models trained by other criteria than the softmax, which
        have figures of their own, and means.
        """
        names = list(names)
        return (
            names
            if len(names) <= most
            else [name for name in names if not self.other_criterion(name) and summed(name) == name]
        )

    def other_criterion(self, name: str) -> bool:
        """Whether a language model of a system was trained by another criterion than the
        softmax.
        """
        configs = self.experiment.configs
        return any(
            configs.get(part, {}).get("criterion", CE) != CE
            for part in summed(name.removeprefix(LATTICE)).split("+")
        )


def provenance(report: Report, *samples: Sample) -> Iterator[str]:
    """Corpus and sizes, the metric's signature, and the commands."""
    experiment = report.experiment
    tuned = [sample for sample in experiment.samples if sample.tuned and sample not in samples]
    sizes = [size(sample) for sample in samples] + [
        f"weights tuned on {size(sample)}" for sample in tuned
    ]
    if experiment.training:
        sizes.append(
            f"LM text: {experiment.training.sentences:,} sentences, {experiment.training.tokens:,}"
            f" {experiment.training.scheme} tokens"
        )
    yield f"Corpus {experiment.title}; " + "; ".join(sizes) + "."
    yield f"Metric: `{METRICS[experiment.metric].signature}`."
    commands = [
        *[stage["command"] for stage in experiment.stages if stage.get("command")][-1:],
        report.command,
    ]
    models = ", ".join(f"{name} {value[:8]}" for name, value in experiment.models.items())
    seeds = ", ".join(f"{name} {seed}" for name, seed in experiment.seeds.items())
    tuning = {
        system.weights.search["seed"]
        for system in experiment.systems.values()
        if system.weights and "seed" in system.weights.search
    }
    tuned = tuning and f"tuning seed {', '.join(map(str, sorted(tuning)))}"
    parts = [
        models and f"model hashes {models}",
        seeds and f"training seeds {seeds}",
        trained_on(experiment.configs.values()),
        tuned,
        f"bootstrap of {RESAMPLES:,} resamples, seed {SEED}",
        *sacre_test(report),
    ]
    yield (
        f"Made by {', then '.join(f'`{command}`' for command in commands)};"
        f" {'; '.join(filter(None, parts))}; lmtools {__version__}."
    )


def sacre_test(report: Report) -> list[str]:
    """What sacrebleu's paired bootstrap drew, where it was asked."""
    tests = [
        result.sacre
        for measured in report.judged
        for result in measured.results.values()
        if result.sacre
    ]
    return [
        f"p (sacreBLEU) by sacreBLEU's paired bootstrap of {test.resamples:,} resamples, seed"
        f" {test.seed}"
        for test in tests[:1]
    ]


def size(sample: Sample) -> str:
    """Name and sizes of a set."""
    depths = [len(nbest.hyps) for nbest in sample.nbests]
    words = sum(len(ref.split()) for ref in sample.refs.values())
    lists = f"lists of up to {max(depths)} (mean {np.mean(depths):.1f})"
    return f"{sample.name}: {len(depths):,} utterances, {words:,} reference words, {lists}"


def decimal(value: float | None, digits: int = 2) -> str:
    """A number with thousands separators, or a dash."""
    return NONE if value is None or not np.isfinite(value) else f"{value:,.{digits}f}"


def interval(result: Result) -> str:
    """The 95% interval in one cell."""
    return "{:.2f}-{:.2f}".format(*result.bootstrap.score_interval) if result.bootstrap else NONE


def probability(p: float) -> str:
    """A probability with three decimals."""
    return "<0.001" if p < 0.0005 else f"{p:.3f}"
