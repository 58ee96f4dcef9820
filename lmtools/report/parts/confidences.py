"""The word confidences of an experiment: networks of a system's words, judged by references."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lmtools.evaluate.word_confidence import JudgedWords, judge_words
from lmtools.report.measure import Sample
from lmtools.types import ConfusionNetwork

POSTERIOR, CONFIDENCE = "posteriors", "confidences"  # before calibration and after it

# by (system, set) and utterance
Networks = Mapping[tuple[str, str], Mapping[str, ConfusionNetwork]]


@dataclass(frozen=True)
class WordConfidences:
    """The networks of one system on one set, by utterance, with the references."""

    networks: Mapping[str, ConfusionNetwork]
    refs: Mapping[str, str]

    @cached_property
    def judged(self) -> dict[str, JudgedWords]:
        """The words judged by their posteriors and, where these are calibrated, by their
        confidences; of a ctm only these; nothing where there are no words.
        """
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
        if network is None or network.text.split() != text.split():
            return None
        return [slot.confidence for slot in network.spoken]


def texts_of(networks: Networks) -> dict[str, dict[str, dict[str, str]]]:
    """Return the chosen words of networks by system, set and utterance."""
    texts: dict[str, dict[str, dict[str, str]]] = {}
    for (system, place), items in networks.items():
        texts.setdefault(system, {})[place] = {utt: item.text for utt, item in items.items()}
    return texts


def join_references(
    networks: Networks, samples: tuple[Sample, ...]
) -> dict[tuple[str, str], WordConfidences]:
    """Return the networks of the sets that have references."""
    refs = {sample.name: sample.refs for sample in samples}
    return {
        key: WordConfidences(items, refs[key[1]])
        for key, items in networks.items()
        if key[1] in refs
    }
