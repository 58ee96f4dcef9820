"""Confusion networks in files: NETWORKS names the formats.

`json` holds all, an utterance a line, and is read back:

    {"utt": "a1", "ref": "blue finch", "text": "blue fins", "slots": [{"chosen": "blue",
      "confidence": 0.94, "words": {"blue": 0.9, "blew": 0.1}, "time": [0.1, 0.42]}, ...]}

`words` are posteriors, most probable first, "" is no word; `confidence` is that of the chosen word
(its posterior, or what calibration made of it); `ref` and `time` may be missing. `text` is Kaldi
text and `ctm` sclite's, of the chosen words; ctm has their confidences, and times, made up where
they are unknown.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.base.grammar import Finite, fit, parse_json
from lmtools.formats import kaldi_text
from lmtools.formats.checks import NUMBER, Utterances, encodable, write_lines
from lmtools.formats.json_lists.json_io import value_of
from lmtools.formats.nbest import ctm
from lmtools.formats.registry import Format, Formats
from lmtools.types import EMPTY, NO_WORD, ConfusionNetwork, Hypothesis, NBest, Slot

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
REMEDY = "posteriors and confidences are from 0 to 1; build the network again"
SUM = 1e-6  # what rounding may make of a sum of posteriors
TICK = 0.1  # seconds of a word whose time is unknown
SUMMARIES = {
    "json": "all of it, an utterance a line: slots, posteriors, confidences, times",
    "ctm": "sclite: `utt 1 start duration word confidence` of the chosen words",
    "text": "Kaldi text of the chosen words",
}


def recognises(path: Path, first: str) -> bool:
    return first.startswith("{") and '"utt"' in first and '"slots"' in first


class SlotTree(msgspec.Struct):
    """A slot in a file: fields of Slot."""

    words: dict[str, Share]
    chosen: str
    confidence: Share
    time: tuple[Finite, Finite] | None = None


class NetworkTree(msgspec.Struct):
    """A line of a file."""

    utt: str
    slots: list[SlotTree]
    ref: str | None = None


def read(path) -> Iterator[ConfusionNetwork]:
    """Yield networks line by line; UserError with the line of anything that is none."""
    utterances = Utterances()
    for number, line in read_lines(path):
        if line.strip():
            where = f"{path}:{number}"
            tree = fit(
                parse_json(line, where), NetworkTree, where, {"slots": "slot"}, remedy=REMEDY
            )
            utt = utterances.add(tree.utt, where)
            slots = enumerate(tree.slots, 1)
            checked = tuple(check_slot(slot, f"{where}: slot {place}") for place, slot in slots)
            yield ConfusionNetwork(utt, checked, tree.ref)


def check_slot(slot: SlotTree, where: str) -> Slot:
    for word in (*slot.words, slot.chosen):
        if encodable(word, where) != NO_WORD and word.split() != [word]:
            raise UserError(f"{where}: {word!a} is no word; write words without white space")
    if not abs(math.fsum(slot.words.values()) - 1) <= SUM:
        raise UserError(f"{where}: the posteriors do not sum to 1; build the network again")
    return Slot(slot.words, slot.chosen, slot.confidence, slot.time)


def as_tree(network: ConfusionNetwork) -> dict:
    slots = []
    for slot in network.slots:
        time = {} if slot.time is None else {"time": [round(time, 3) for time in slot.time]}
        words = {word: shorten(share) for word, share in slot.words.items()}
        part = {"chosen": slot.chosen, "confidence": shorten(slot.confidence), "words": words}
        slots.append(part | time)
    ref = {} if network.ref is None else {"ref": network.ref}
    return {"utt": network.utt, **ref, "text": network.text, "slots": slots}


def shorten(share: float) -> float:
    return float(f"{share:.9g}")


def write(networks: Iterable[ConfusionNetwork], path) -> None:
    trees = {}

    def headers() -> Iterator[NBest]:
        for network in networks:
            trees["last"] = as_tree(network)
            yield NBest(network.utt, (Hypothesis(network.text),), network.ref)

    write_lines(headers(), path, lambda *_: [json.dumps(trees.pop("last"), ensure_ascii=False)])


def write_text(networks: Iterable[ConfusionNetwork], path) -> None:
    kaldi_text.write_rows(((network.utt, network.text) for network in networks), path)


def write_ctm(networks: Iterable[ConfusionNetwork], path) -> None:
    ctm.write(map(as_timed_list, networks), path)


def as_timed_list(network: ConfusionNetwork) -> NBest:
    slots = network.spoken
    if all(slot.time is None for slot in slots):
        times = ctm.made_up(len(slots))
    else:
        spans = fill_times([slot.time for slot in slots])
        times = [f"1 {start:.2f} {max(end - start, 0):.2f}" for start, end in spans]
    rows = [f"{time} {slot.confidence:.6f}" for time, slot in zip(times, slots, strict=True)]
    extra = {"times": "\n".join(rows)} if rows else EMPTY
    return NBest(network.utt, (Hypothesis(network.text, {}, extra),))


def fill_times(times: Sequence[tuple[float, float] | None]) -> list[tuple[float, float]]:
    """Return times with those unknown evenly between the known ones, TICK each at the ends."""
    known = [place for place, time in enumerate(times) if time is not None]
    filled = []
    for place, time in enumerate(times):
        if time is None:
            left = max((other for other in known if other < place), default=-1)
            right = min((other for other in known if other > place), default=len(times))
            gap = right - left - 1
            start = 0.0 if left < 0 else times[left][1]
            end = start + TICK * gap if right == len(times) else times[right][0]
            start = max(end - TICK * gap, 0.0) if left < 0 else start
            step = (end - start) / gap
            time = start + step * (place - left - 1), start + step * (place - left)
        filled.append(time)
    return filled


def refuse_read(path) -> Iterator[ConfusionNetwork]:
    raise UserError(f"{path}: holds no network, only chosen words; give the JSON of one")


def no_network(path: Path, first: str) -> bool:
    return False


NETWORKS = Formats(
    {
        "json": Format(SUMMARIES["json"], recognises, read, write),
        "ctm": Format(SUMMARIES["ctm"], no_network, refuse_read, write_ctm),
        "text": Format(SUMMARIES["text"], no_network, refuse_read, write_text),
    }
)

KEYS = ("conf", "confidence", "probability", "score")  # of Vosk, clouds, Whisper, whisperX
PARTS = ("segments", "chunks", "transcription")  # of Whisper, Hugging Face, whisper.cpp


@dataclass(frozen=True)
class WordMark:
    """Start and end of a word in seconds, and its confidence, None where unknown."""

    start: float
    end: float
    confidence: float | None = None


def read_marks(hyp: Hypothesis) -> list[WordMark] | None:
    """Return the mark of each word of a hypothesis; None where its format has none."""
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
    """Return the marks of words between two times, None where nothing says when a word was."""
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
