"""Times and confidences of words, from what the programs that write lists keep beside a text.

The extras of a hypothesis are read as they stand: seconds, also as text (`1.3s`, `PT1.3S`) or as
`{seconds, nanos}`, milliseconds, Azure's ticks; an end or a duration; pieces that make words. They
count where they are as many as the words of the text, since normalising may have changed it. Frames
(pyctcdecode, Hugging Face's `word_offsets`) say no seconds.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from lmtools.base.errors import UserError
from lmtools.formats.checks import NUMBER
from lmtools.formats.json_lists.json_io import value_of
from lmtools.types import Hypothesis

NONE = "NA"  # of a ctm, in the place of a confidence
PARTS = ("segments", "chunks", "transcription")  # of Whisper, Hugging Face, whisper.cpp
# of Vosk; Azure, Google, Deepgram, OpenAI; Azure's written form; AWS; Watson
WORDS = ("result", "words", "Words", "DisplayWords", "displayWords", "items", "timestamps")
CONFIDENCES = ("conf", "confidence", "Confidence", "probability", "score", "p")
# keys of a time, and how many seconds one of it is
TICK, MILLISECOND = 1e-7, 1e-3
STARTS = {
    "offsetInTicks": TICK, "Offset": TICK, "offsetMilliseconds": MILLISECOND, "offset": 1.0,
    "start": 1.0, "start_time": 1.0, "startTime": 1.0, "startOffset": 1.0, "start_offset": 1.0,
    "ts": 1.0,
}  # fmt: skip
ENDS = {
    "end": 1.0, "end_time": 1.0, "endTime": 1.0, "endOffset": 1.0, "end_offset": 1.0, "end_ts": 1.0
}  # fmt: skip
DURATIONS = {
    "durationInTicks": TICK, "Duration": TICK, "durationMilliseconds": MILLISECOND, "duration": 1.0
}  # fmt: skip
SECONDS = re.compile(r"(?:PT(?:(\d+)H)?(?:(\d+)M)?)?(\d*\.?\d+)[sS]?")


@dataclass(frozen=True)
class WordMark:
    """Start and end of a word in seconds, and its confidence, None where unknown."""

    start: float
    end: float
    confidence: float | None = None


def read_marks(hyp: Hypothesis) -> list[WordMark] | None:
    """Return the mark of each word of a hypothesis; None where none fit its words."""
    count = len(hyp.text.split())
    for marks in find_marks(hyp.extra) if hyp.extra else ():
        if None not in marks and len(marks) == count:
            return [mark for mark in marks if mark]
    return None


def find_marks(extra: Mapping[str, str]) -> Iterator[list[WordMark | None]]:
    """Yield what may be the marks of all words, by each key that may hold some."""
    if "times" in extra:  # of a ctm
        yield [parse_columns(line) for line in extra["times"].split("\n")]
    values = {key: value_of(extra[key]) for key in (*PARTS, *WORDS, "tokens") if key in extra}
    segments = list_objects(values.get("segments"))
    if not any("words" in part for part in segments):
        for key in WORDS:
            yield share_confidences(share_times(list_words(values.get(key)), None, None))
    if isinstance(values.get("tokens"), list):  # of sherpa-onnx, beside their starts
        starts = [start for start in values.get("timestamps") or () if is_number(start)]
        if len(starts) == len(values["tokens"]):
            pairs = zip(values["tokens"], starts, [*starts[1:], None], strict=True)
            tokens = [{"text": t, "start": begin, "end": end} for t, begin, end in pairs]
            yield share_times(join_tokens(tokens), None, None)
    yield share_confidences(mark_parts(values, segments))


def mark_parts(values: Mapping, segments: list[dict]) -> list[WordMark | None]:
    """Return the marks of the words of `segments`, else those that share the times of the parts
    (whisper.cpp's have tokens) that they stand in.
    """
    if not any("words" in part for part in segments):
        parts = next(filter(None, (list_objects(values.get(key)) for key in PARTS)), [])
        tokens = [join_tokens(list_objects(part.get("tokens"))) for part in parts]
        counts = [len(str(part.get("text")).split()) for part in parts]
        segments = [
            part | {"words": some if len(some) == count else [{}] * count}
            for part, some, count in zip(parts, tokens, counts, strict=True)
        ]
    return [
        mark
        for part in segments
        for mark in share_times(list_words(part.get("words")), *find_span(part))
    ] or [None]


def list_objects(value) -> list[dict]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def list_words(value) -> list[dict]:
    """Return the words of a list: objects but for punctuation (AWS's), or Watson's rows."""
    rows = [
        dict(zip(("text", "start", "end"), item, strict=False)) if isinstance(item, list) else item
        for item in (value if isinstance(value, list) else ())
    ]
    return [word for word in list_objects(rows) if word.get("type") != "punctuation"]


def join_tokens(tokens: Sequence[Mapping]) -> list[dict]:
    """Return the words that tokens make, each begun by a blank (`▁`), with the first one's start
    and the last one's end; special tokens of Whisper's are left out.
    """
    words: list[dict] = []
    for token in tokens:
        text = str(token.get("text")).replace("\u2581", " ")
        if re.fullmatch(r"\s*(\[_\w+\]|<\|.*\|>)?", text):
            continue
        start, end = find_span(token)
        if words and not text.startswith(" "):
            words[-1]["end"] = end
        else:
            words.append({"start": start, "end": end})
    return [word if word["end"] is not None else word | {"end": word["start"]} for word in words]


def find_span(part: Mapping) -> list:
    """Return where a part of an output starts and ends, in seconds, None where it does not say."""
    if isinstance(span := part.get("timestamp"), list) and len(span) == 2:  # of Hugging Face
        return span
    if isinstance(offsets := part.get("offsets"), dict):  # of whisper.cpp, in milliseconds
        ends = [offsets.get("from"), offsets.get("to")]
        return [end * MILLISECOND if is_number(end) else None for end in ends]
    start, end, duration = (find_time(part, keys) for keys in (STARTS, ENDS, DURATIONS))
    if end is None and start is not None and duration is not None:
        end = start + duration
    if not STARTS.keys() & part.keys() and {"endTime", "endOffset"} & part.keys():
        start = 0.0  # Google leaves zero out
    return [start, end]


def find_time(part: Mapping, keys: Mapping[str, float]) -> float | None:
    """Return the time under the first of `keys` that there is, in seconds."""
    for key, unit in keys.items():
        frames = key.endswith("_offset") and is_number(part.get(key))  # Google's are text
        if part.get(key) is not None and not frames:
            seconds = parse_seconds(part[key])
            return None if seconds is None else seconds * unit
    return None


def parse_seconds(value) -> float | None:
    """Return a number, also as text (`1.3`, `1.3s`, `PT1M2.5S`) or as `{seconds, nanos}`."""
    if isinstance(value, dict):
        whole, parts = value.get("seconds", 0), value.get("nanos", 0)
        whole = None if isinstance(whole, dict) else parse_seconds(whole)
        return whole + parts * 1e-9 if whole is not None and is_number(parts) else None
    if isinstance(value, str):
        match = SECONDS.fullmatch(value)
        if not match:
            return None
        hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return 3600 * hours + 60 * minutes + seconds
    return float(value) if is_number(value) else None


def share_times(words: Sequence[dict], start, end) -> list[WordMark | None]:
    """Return the marks of words between two times, None where nothing says when a word was."""
    marks = [parse_word(word) for word in words]
    bare = [
        not mark and all(word.get(key) is None for key in STARTS)
        for mark, word in zip(marks, words, strict=True)
    ]
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
    numbers = fields[:2] if fields[2:] in ([], [NONE]) else fields
    if len(numbers) not in (2, 3) or not all(map(NUMBER.fullmatch, numbers)):
        return None
    start, duration, *confidence = map(float, numbers)
    return WordMark(start, start + duration, check_confidence(*confidence))


def check_confidence(value: float | None = None) -> float | None:
    if value is not None and not 0 <= value <= 1:
        raise UserError(
            f"a word's confidence is {value:g}; expected a probability from 0 to 1: divide percent"
            " by 100"
        )
    return value


def parse_word(word: Mapping) -> WordMark | None:
    """Return the mark of a word; None without times."""
    start, end = find_span(word)
    given = [word[key] for key in CONFIDENCES if word.get(key) is not None][:1]
    numbers = [start, end, *map(parse_seconds, given)]
    if not all(map(is_number, numbers)):
        return None
    return WordMark(*numbers[:2], check_confidence(*numbers[2:]))
