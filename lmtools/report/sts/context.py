"""What tables, figures and the page of an experiment of semantic textual similarity are made from,
and the lines that say so.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from lmtools.report.lm.context import made_by
from lmtools.report.names import view_label, viewed
from lmtools.report.sts.experiment import StsExperiment

MINI = "mini"  # the corpus whose similarity no one judged: it follows from how its pairs were made
REFERENCE = "tta"  # the system that the others are compared with
# Pearson x100 of contexts by corpus, system and set, as published: what the documentation of the
# T-TA paper's public code (github.com/joongbo/tta, README.md, run_unsupervisedstsb.py) prints for
# its pretrained model: mean over the last layer's tokens.
PUBLISHED = {"stsb": {"tta": {"dev": 71.88, "test": 62.27}}}


@dataclass(frozen=True)
class StsReport:
    """What the tables, figures and the page are made of; `command` is the call that makes them."""

    experiment: StsExperiment
    command: str

    sets = ()  # no lists, so that the page has no utterances to browse
    contents = "these tables and figures"

    @cached_property
    def labels(self) -> dict[str, str]:
        """The printed name of each system."""
        return {
            system: view_label(system, self.experiment.systems)
            for system in self.experiment.systems
        }

    @property
    def published(self) -> dict[str, dict[str, float]]:
        """Published figures of this corpus, by system and set."""
        return PUBLISHED.get(self.experiment.corpus, {})

    @property
    def judges(self) -> str:
        """Whose the similarity is that cosines are correlated with."""
        return (
            "constructed similarity"
            if self.experiment.corpus == MINI
            else "similarity as people judged it"
        )

    @property
    def of_what(self) -> str:
        """What a title ends in: the corpus, and that its similarity is constructed."""
        constructed = ", constructed similarity" if self.experiment.corpus == MINI else ""
        return self.experiment.title + constructed


def provenance(report: StsReport) -> Iterator[str]:
    """Corpus and sizes, what the figures are, then the commands, model hashes and seeds."""
    experiment = report.experiment
    parts = [f"{name}: {len(experiment.gold(name)):,} pairs" for name in experiment.sets]
    if training := experiment.training:
        parts.append(
            f"LM text: {training.sentences:,} sentences, {training.tokens:,} {training.scheme}"
            " tokens"
        )
    yield f"Corpus {experiment.title}; {'; '.join(parts)}. No similarity was trained on."
    hashes = {}
    for (system, _), one in experiment.judged.items():
        if one.signature.get("model"):
            hashes.setdefault(viewed(system)[0], str(one.signature["model"]))
    yield made_by(experiment.stages, report.command, hashes, experiment.models.values())
