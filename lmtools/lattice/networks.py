"""What is asked of confusion networks: other choices of words, expected errors, the lattice of the
same paths.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from lmtools.types import NO_WORD, Arc, ConfusionNetwork, Final, Lattice


def expected_errors(network: ConfusionNetwork, words: Sequence[str] | None = None) -> float:
    """Return the expected number of word errors of a path, a word or NO_WORD a slot, or of the
    chosen one, if slots are right or wrong independently: the sum of 1 - posterior.
    """
    path = [slot.chosen for slot in network.slots] if words is None else words
    return math.fsum(
        1 - slot.words.get(word, 0.0) for slot, word in zip(network.slots, path, strict=True)
    )


def choose_words(network: ConfusionNetwork, words: Sequence[str]) -> ConfusionNetwork:
    """Return the network with another word, or NO_WORD, chosen in each slot; times of slots whose
    word changes are unknown.
    """
    slots = [
        slot
        if slot.chosen == word
        else replace(slot, chosen=word, confidence=slot.words.get(word, 0.0), time=None)
        for slot, word in zip(network.slots, words, strict=True)
    ]
    return replace(network, slots=tuple(slots))


def as_lattice(network: ConfusionNetwork) -> Lattice:
    """Return the lattice of a network: a state before each slot and one behind the last, logarithms
    of posteriors as `am`.
    """
    arcs = [
        Arc(place, place + 1, None if word == NO_WORD else word, {"am": math.log(share)})
        for place, slot in enumerate(network.slots)
        for word, share in slot.words.items()
        if share > 0
    ]
    end = len(network.slots)
    return Lattice.of(network.utt, end + 1, 0, arcs, [Final(end, {"am": 0.0})])
