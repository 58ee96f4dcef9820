"""Times and confidences of words, wherever a hypothesis's format keeps them: a ctm's columns, the
`result` of Vosk, the words of Whisper's `segments`.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lmtools.base.errors import UserError
from lmtools.formats.checks import NUMBER
from lmtools.formats.json_lists.json_io import value_of
from lmtools.formats.nbest import ctm
from lmtools.types import Hypothesis

KEYS = ("conf", "confidence", "probability")  # of Vosk, of clouds, of Whisper


@dataclass(frozen=True)
class WordMark:
    """Start and end of a word in seconds, and its confidence, None where unknown."""

    start: float
    end: float
    confidence: float | None = None


def read_marks(hyp: Hypothesis) -> list[WordMark] | None:
    """Return the mark of each word of a hypothesis, or None where its format has none, or of
    another number of words. UserError for confidences that are no probabilities.
    """
    extra = hyp.extra
    if not extra:
        return None
    if "times" in extra:
        marks = [parse_columns(line) for line in extra["times"].split("\n")]
    elif "result" in extra:
        marks = parse_words(value_of(extra["result"]))
    elif "segments" in extra:
        segments = value_of(extra["segments"])
        segments = segments if isinstance(segments, list) else []
        words = (part.get("words") for part in segments if isinstance(part, dict))
        marks = [mark for part in words for mark in parse_words(part)]
    else:
        return None
    whole = None not in marks and len(marks) == len(hyp.text.split())
    return [mark for mark in marks if mark] if whole else None


def parse_columns(line: str) -> WordMark | None:
    """Return the mark in `channel start duration [confidence]`, None where it is no such line."""
    _, *fields = line.split(" ") if line else [""]
    numbers = fields[:2] if fields[2:] in ([], [ctm.NONE]) else fields
    if len(numbers) not in (2, 3) or not all(map(NUMBER.fullmatch, numbers)):
        return None
    start, duration, *confidence = map(float, numbers)
    return WordMark(start, start + duration, check_confidence(*confidence))


def check_confidence(value: float | None = None) -> float | None:
    """Return a confidence; UserError for one that is no probability."""
    if value is not None and not 0 <= value <= 1:
        raise UserError(
            f"a word's confidence is {value:g}; expected a probability from 0 to 1: divide percent"
            " by 100"
        )
    return value


def parse_words(words: Iterable[Mapping] | None) -> list[WordMark | None]:
    """Return the marks of words as Vosk and Whisper write them; None for what is none."""
    return [parse_word(word) for word in words] if isinstance(words, list) else [None]


def parse_word(word) -> WordMark | None:
    """Return the mark of one word."""
    if not isinstance(word, dict):
        return None
    numbers = [word.get("start"), word.get("end"), *(word[key] for key in KEYS if key in word)]
    plain = [
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        for value in numbers
    ]
    if not all(plain):
        return None
    return WordMark(*numbers[:2], check_confidence(*numbers[2:3]))
