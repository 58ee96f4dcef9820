"""Candidates of a recogniser for a window of sound, with scores: equal words merged, the windows of
a recording combined.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from lmtools.text.normaliser import NORMALISERS

# what tells words apart: neither case nor punctuation
WORDS = NORMALISERS["librispeech"]


class Candidate(NamedTuple):
    """A text, the sum of the log-probabilities of its tokens and the end, their number, and the log
    of the probability of all that was merged into it.
    """

    text: str
    am: float
    length: int
    mass: float

    @property
    def avg(self) -> float:
        """Return `am` a token, by which beam search ranks."""
        return self.am / max(self.length, 1)


NOTHING = Candidate("", 0.0, 0, 0.0)


def be_silent(no_speech: float) -> Candidate:
    """Return the candidate without words, as probable as it is that nobody speaks."""
    log = math.log(max(no_speech, 1e-10))
    return Candidate("", log, 0, log)


def merge_equal(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return those of different words, each as it is written first, in that order."""
    merged: dict[str, Candidate] = {}
    for candidate in candidates:
        words = WORDS(candidate.text)
        if first := merged.get(words):
            mass = float(np.logaddexp(first.mass, candidate.mass))
            candidate = first._replace(mass=mass)
        merged[words] = candidate
    return list(merged.values())


def rank_rest(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the first, which is the recogniser's own answer, and the others by `avg`."""
    return [*candidates[:1], *sorted(candidates[1:], key=lambda other: -other.avg)]


def combine_windows(windows: Iterable[Sequence[Candidate]], depth: int) -> list[Candidate]:
    """Return at most `depth` combinations of the candidates of consecutive windows, that of the
    first ones first; NOTHING where there is no window.
    """
    whole = [NOTHING]
    for window in windows:
        pairs = [
            Candidate(f"{a.text} {b.text}", a.am + b.am, a.length + b.length, a.mass + b.mass)
            for a in whole
            for b in window
        ]
        whole = rank_rest(merge_equal(pairs))[:depth]
    return whole
