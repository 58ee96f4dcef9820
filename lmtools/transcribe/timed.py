"""Segments of a recording and their words, with times, and what the second pass changed."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from lmtools.evaluate.edits import align


@dataclass(frozen=True)
class TimedWord:
    """A word as it is written, from `start` to `end` in seconds.

    `probability` is the recogniser's own, `confidence` the posterior among the alternatives of its
    segment (None without a second pass); `changed`: the recogniser's own answer has another word
    there, or none.
    """

    start: float
    end: float
    word: str
    probability: float
    changed: bool = False
    confidence: float | None = None


@dataclass(frozen=True)
class TimedText:
    """A segment of a few seconds: its text, the recogniser's `first` answer, and its words.

    `marks` are what the recogniser says of the window that it heard: avg_logprob, no_speech_prob,
    compression_ratio, temperature.
    """

    start: float
    end: float
    text: str
    first: str
    words: list[TimedWord] = field(default_factory=list)
    marks: dict[str, float] = field(default_factory=dict)


def find_changes(first: list[str], chosen: list[str]) -> Iterator[bool]:
    """Yield of each of the chosen words, both as they are compared, whether the first answer lacks
    it there.
    """
    yield from (step != "C" for step in align(first, chosen).steps if step != "D")
