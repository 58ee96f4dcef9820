"""Times and confidences of words, wherever a hypothesis's format keeps them: a ctm's columns, the
`result` of Vosk, the words of Whisper's `segments`, `words` of OpenAI and Deepgram.

Words of Whisper's family may lack times and a confidence, as numbers do that whisperX cannot align:
they share the time between their neighbours, and have the mean of these neighbours' confidences.
Words of parts that have times only as a whole share these.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from lmtools.base.errors import UserError
from lmtools.formats.checks import NUMBER
from lmtools.formats.json_lists.json_io import value_of
from lmtools.formats.nbest import ctm
from lmtools.types import Hypothesis

KEYS = ("conf", "confidence", "probability", "score")  # of Vosk, clouds, Whisper, whisperX
PARTS = ("segments", "chunks", "transcription")  # of Whisper, Hugging Face, whisper.cpp


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
    else:
        marks = share_confidences(parse_parts(extra))
    whole = None not in marks and len(marks) == len(hyp.text.split())
    return [mark for mark in marks if mark] if whole else None


def parse_parts(extra: Mapping[str, str]) -> list[WordMark | None]:
    """Return the marks of the words of `segments`, else of `words`, else those that share the times
    of the `segments`, `chunks` or whisper.cpp's `transcription` that they stand in.
    """
    values = {key: value_of(extra[key]) for key in (*PARTS, "words") if key in extra}
    if not values:
        return [None]
    segments = list_objects(values.get("segments"))
    if not any("words" in part for part in segments):
        if words := list_objects(values.get("words")):
            return share_times(words, None, None)
        parts = next(filter(None, (list_objects(values.get(key)) for key in PARTS)), [])
        segments = [part | {"words": [{}] * len(str(part.get("text")).split())} for part in parts]
    words = (list_objects(part.get("words")) for part in segments)
    spans = map(find_span, segments)
    return [
        mark for row, span in zip(words, spans, strict=True) for mark in share_times(row, *span)
    ]


def list_objects(value) -> list[dict]:
    """Return the objects of a list; none of what is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def find_span(part: Mapping) -> list:
    """Return where a part of an output starts and ends, in seconds, None where it does not say."""
    if isinstance(span := part.get("timestamp"), list) and len(span) == 2:  # of Hugging Face
        return span
    if isinstance(offsets := part.get("offsets"), dict):  # of whisper.cpp, in milliseconds
        ends = [offsets.get("from"), offsets.get("to")]
        return [end / 1000 if is_number(end) else None for end in ends]
    return [part.get("start"), part.get("end")]


def share_times(words: Sequence[dict], start, end) -> list[WordMark | None]:
    """Return the marks of words between two times, None where a word has none and no neighbour or
    end says when it may have been.
    """
    marks = parse_words(words)
    bare = [word.get("start") is None for word in words]
    for missing, run in groupby(range(len(bare)), key=bare.__getitem__):
        places = list(run)
        first, stop = places[0], places[-1] + 1
        before = marks[first - 1] if first else WordMark(start, start)
        after = marks[stop] if stop < len(marks) else WordMark(end, end)
        if missing and before and after and is_number(before.end) and is_number(after.start):
            edges = np.linspace(before.end, max(before.end, after.start), len(places) + 1).tolist()
            marks[first:stop] = map(WordMark, edges, edges[1:])
    return marks


def share_confidences(marks: Sequence[WordMark | None]) -> list[WordMark | None]:
    """Return marks that all have a confidence, if some have: between two others on their line."""
    places = [n for n, mark in enumerate(marks) if mark and mark.confidence is not None]
    if not places:
        return list(marks)
    known = [marks[n].confidence for n in places]
    shared = np.interp(range(len(marks)), places, known).tolist()
    return [
        mark and replace(mark, confidence=value) for mark, value in zip(marks, shared, strict=True)
    ]


def is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


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
    if not isinstance(word, dict):
        return None
    given = [word[key] for key in KEYS if word.get(key) is not None]
    numbers = [word.get("start"), word.get("end"), *given]
    if not all(map(is_number, numbers)):
        return None
    return WordMark(*numbers[:2], check_confidence(*numbers[2:3]))
