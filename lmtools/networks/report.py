"""What an experiment's report says of word confidences: networks of a system's words, judged by
references; a table and a figure.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from lmtools.networks.confidence import JudgedWords, judge_words
from lmtools.networks.lists import NetworkPlan
from lmtools.networks.systems import read_system
from lmtools.report.drawing import LIGHT, Picture, Theme, beside, line
from lmtools.report.experiment import Experiment
from lmtools.report.rows import FigureRow
from lmtools.report.style import Look, Names
from lmtools.report.table import Column, Table, decimal, figures, table_of
from lmtools.text.scripts import split_units
from lmtools.types import EMPTY, ConfusionNetwork

POSTERIOR, CONFIDENCE = "posteriors", "confidences"  # before calibration and after it
RELIABILITY, ROC = "share right", "share of right words"


@dataclass(frozen=True)
class WordConfidences:
    """The networks of one system on one set, by utterance, with the references."""

    networks: Mapping[str, ConfusionNetwork]
    refs: Mapping[str, str] = field(default_factory=lambda: EMPTY)

    @property
    def texts(self) -> dict[str, str]:
        return {utt: network.text for utt, network in self.networks.items()}

    @cached_property
    def judged(self) -> dict[str, JudgedWords]:
        """The words judged by posteriors and, where calibrated (of a ctm only), confidences."""
        networks = [self.networks[utt] for utt in self.refs if utt in self.networks]
        slots = [slot for network in networks for slot in network.spoken]
        if not slots:
            return {}
        words = judge_words(networks, self.refs)
        before = np.array([slot.words.get(slot.chosen, 0.0) for slot in slots])
        if np.array_equal(before, words.confidence):
            return {POSTERIOR: words}
        if all(len(slot.words) == 1 for slot in slots):
            return {CONFIDENCE: words}
        return {POSTERIOR: replace(words, confidence=before), CONFIDENCE: words}

    def of_text(self, utt: str, text: str) -> list[float] | None:
        """Return the confidence of each word of a text; None where the network has others."""
        network = self.networks.get(utt)
        if network is None or split_units(network.text) != split_units(text):
            return None
        return [slot.confidence for slot in network.spoken]

    def rows(self, name: str, place: str) -> Iterator[FigureRow]:
        """Yield reliability by bin, and the ROC at each hundredth of wrong words."""
        for kind, words in self.judged.items():
            key = (kind, name, place)
            for quantity, value in words.figures.items():
                yield FigureRow(*key, quantity, value)
            for mean, right, count in words.reliability().tolist():
                if count:
                    yield FigureRow(*key, RELIABILITY, right, at=mean)
            false, true = words.roc().T
            for hundredth in range(101) if math.isfinite(words.area) else ():
                share = hundredth / 100
                yield FigureRow(*key, ROC, float(np.interp(share, false, true)), at=share)


def read_networks(home: Path) -> dict[tuple[str, str], WordConfidences]:
    """Read network/SYSTEM/SET.json and .ctm by (system, set), without references."""
    paths = sorted([*home.glob("network/*/*.json"), *home.glob("network/*/*.ctm")])
    read = partial(read_system, form=None, plan=NetworkPlan())
    return {
        (path.parent.name, path.stem): WordConfidences(read(str(path)).networks) for path in paths
    }


FIGURES = {"words": 0, "right %": 1, "NCE": 3, "ECE %": 2, "ROC area": 3}
NOTE = (
    "Words of networks, judged by their alignment with the references; confidences are calibrated"
    " posteriors, or what a ctm says. NCE is normalised cross entropy (NIST): 1 at best, below 0"
    " worse than one number for all words; ECE is the mean distance of confidence and share right,"
    " in ten bins; ROC area is how often a right word has more confidence than a wrong one."
)


def confidence_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield for each set that weights were not tuned on how far confidences can be trusted."""
    lists, value = experiment.lists, experiment.rows.value
    for place in (measured.sample.name for measured in lists.judged):
        words = lists.words_of(place)
        keys = [(kind, name) for name, held in words.items() for kind in held.judged]
        columns = [
            Column("system", [lists.names.label(name) for _, name in keys]),
            Column("of", [kind for kind, _ in keys]),
            *(
                figures(quantity, [value(*key, quantity, place) for key in keys], digits)
                for quantity, digits in FIGURES.items()
            ),
        ]
        if keys:
            yield table_of(f"Confidences of words: {place}", columns, (NOTE,), left=2)


CAPTION = (
    "Word confidences on {}. Left: share of words that are right at the mean confidence of each of"
    " ten bins; the dotted line is a confidence that says what is so. Right: share of right and of"
    " wrong words above each threshold."
)


def confidence_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield reliability and ROC of words, before and after calibration, on tested sets."""
    for place in (measured.sample.name for measured in experiment.lists.judged):
        judged, looks = {}, {}
        systems = experiment.lists.words_of(place)
        of_systems = experiment.names.looks(list(systems))
        for name, held in systems.items():
            for kind, words in held.judged.items():
                label, look = f"{experiment.names.label(name)}, {kind}", of_systems[name]
                judged[label] = words
                raw = kind == POSTERIOR
                looks[label] = replace(look, line="--" if raw else "-", hollow=raw)
        if judged:
            errors = [
                f"{name} {100 * words.calibration_error:.2f}%" for name, words in judged.items()
            ]
            yield Picture(
                f"confidence-{place}",
                CAPTION.format(place),
                f"Expected calibration error: {', '.join(errors)}.",
                partial(draw_panels, judged, looks),
                wide=True,
            )


def draw_confidences(judged: Mapping[str, JudgedWords]) -> bytes:
    """Draw reliability and ROC, a line a set of confidences; return PNG."""
    looks = Names().looks(list(judged))
    return Picture("confidences", "", "", partial(draw_panels, judged, looks)).png(LIGHT)


def draw_panels(
    judged: Mapping[str, JudgedWords], looks: Mapping[str, Look], theme: Theme
) -> Figure:
    figure = Figure((10, 4))
    reliability, roc = figure.subplots(1, 2)
    diagonal = {"color": theme.ink, "linewidth": 0.8, "linestyle": ":"}
    for axes in (reliability, roc):
        axes.plot([0, 1], [0, 1], **diagonal)
    for name, words in judged.items():
        rows = words.reliability()
        rows = rows[rows[:, 2] > 0]
        label = (
            f"{name}\nECE {100 * words.calibration_error:.1f}%, NCE {decimal(words.cross_entropy)},"
            f" area {decimal(words.area)}"
        )
        line(reliability, theme, looks[name], label, x=rows[:, 0], y=rows[:, 1])
        false, true = words.roc().T
        line(roc, theme, looks[name], name, x=false, y=true, marker="")
    reliability.set_title("Reliability")
    reliability.set_xlabel("mean confidence")
    reliability.set_ylabel("share of words that are right")
    roc.set_title("ROC")
    roc.set_xlabel("share of wrong words above the threshold")
    roc.set_ylabel("share of right words above it")
    beside(roc, reliability)
    return figure
