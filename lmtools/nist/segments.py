"""Words with times cut into the segments of a reference, as sclite scores a ctm against an stm.

A word belongs to the first segment of its channel that ends behind the word's middle; the last
segment takes all that are left. Words in a segment whose text is
`ignore_time_segment_in_scoring` are not scored. Segments and words are put in the order of time
first, as NIST's hubscr.pl has them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.evaluate.inputs import Texts
from lmtools.formats.checks import number
from lmtools.formats.nbest.stm import IGNORED, StmSegment, read_segments
from lmtools.nist.alignment import LOWER, NULL
from lmtools.nist.glm import GlobalMap

COLUMNS = 4  # of a ctm before the word
CONFIDENCE = re.compile(r"[0-9.-]*")
BEGIN, NEXT, END = "<alt_begin>", "<alt>", "<alt_end>"
Channel = tuple[str, str]  # recording and channel, in lower case
Line = tuple[str, list[str]]  # where, fields
Timed = tuple[str, float, float]  # word, begin, duration


@dataclass(frozen=True)
class Spoken:
    """A word of a ctm, or an alternation, with its middle in seconds."""

    text: str
    middle: float


class CutTexts(NamedTuple):
    """References and hypotheses by segment, and the segments that they are of."""

    ref: Texts
    hyp: Texts
    segments: Mapping[str, StmSegment]


def cut_words(ref, hyp, glm: GlobalMap | None = None) -> CutTexts:
    """Read an stm and a ctm, by a global map if there is one, and cut the words; a channel without
    words has empty hypotheses. UserError with the line for what is neither.
    """
    segments, spoken = read_stm(ref, glm), read_ctm(hyp, glm)
    if unknown := [channel for channel in spoken if channel not in segments]:
        raise UserError(
            f"{hyp}: recording {unknown[0][0]!r}, channel {unknown[0][1]!r} is not in {ref}; give"
            " the hypotheses of these recordings, under the same names of channels"
        )
    refs: dict[str, str] = {}
    hyps: dict[str, str] = {}
    places: dict[str, StmSegment] = {}
    for channel, rows in segments.items():
        parts = cut_channel(rows, spoken.get(channel, ()))
        for place, (segment, words) in enumerate(zip(rows, parts, strict=True)):
            if IGNORED in segment.text.lower():
                continue
            utt = f"{segment.recording}-{segment.channel}-{place:04d}"
            refs[utt], hyps[utt], places[utt] = segment.text, " ".join(words), segment
    return CutTexts(Texts(ref, refs, form="stm"), Texts(hyp, hyps, form="ctm"), places)


def cut_channel(segments: Sequence[StmSegment], spoken: Sequence[Spoken]) -> list[list[str]]:
    """Return the words of each segment of a channel, both in the order of time."""
    parts: list[list[str]] = []
    place = 0
    for segment in segments[:-1]:
        begin = place
        end = float(np.float32(segment.end))  # as sclite keeps it
        while place < len(spoken) and spoken[place].middle < end:
            place += 1
        parts.append([word.text for word in spoken[begin:place]])
    return [*parts, [word.text for word in spoken[place:]]]


def read_stm(path, glm: GlobalMap | None = None) -> dict[Channel, list[StmSegment]]:
    channels: dict[Channel, list[StmSegment]] = {}
    for where, segment in read_segments(path):
        if glm and IGNORED not in segment.text.lower():
            text = glm.rewrite(segment.text, "stm", "ref", where)
            segment = replace(segment, text=text)
        names = segment.recording, segment.channel
        channels.setdefault(channel_of(names), []).append(segment)
    if not channels:
        raise UserError(f"{path}: holds no segment; give an stm file")
    return {channel: sorted(rows, key=lambda row: row.begin) for channel, rows in channels.items()}


def channel_of(fields: Sequence[str]) -> Channel:
    return fields[0].translate(LOWER), fields[1].translate(LOWER)


def read_ctm(path, glm: GlobalMap | None = None) -> dict[Channel, list[Spoken]]:
    """Read the words of each channel, in the order of time, alternations as one; UserError with
    the line of what is none. Words that the rules make of one stay at its place.
    """
    channels: dict[Channel, list[list[Line]]] = {}
    for unit in read_units(path):
        channels.setdefault(channel_of(unit[0][1]), []).append(unit)
    return {
        channel: [
            spoken
            for unit in sorted(units, key=begin_of)
            for spoken in (read_alternation if is_mark(unit[0][1]) else read_word)(unit, glm)
        ]
        for channel, units in channels.items()
    }


def read_units(path) -> Iterator[list[Line]]:
    """Yield the lines (where, fields) of each word, and of each alternation as one, of a ctm."""
    unit: list[Line] = []
    where = str(path)
    for line_number, line in read_lines(path):
        if not line.strip() or line.startswith(";;"):
            continue
        where, fields = f"{path}:{line_number}", line.split()
        if len(fields) <= COLUMNS:
            raise UserError(
                f"{where}: expected `recording channel start duration word [confidence]`; correct"
                " the line"
            )
        mark = fields[COLUMNS].lower()
        if is_mark(fields) and bool(unit) == (mark == BEGIN):
            raise UserError(f"{where}: {fields[COLUMNS]} out of place; correct the line")
        if not is_mark(fields):
            number(fields[2], where, "start"), number(fields[3], where, "duration")
        unit.append((where, fields))
        if mark != BEGIN and (mark == END or not is_mark(unit[0][1])):
            yield unit
            unit = []
    if unit:
        raise UserError(f"{where}: <ALT_BEGIN> without <ALT_END> behind it; complete the file")


def is_mark(fields: Sequence[str]) -> bool:
    return fields[COLUMNS].lower() in (BEGIN, NEXT, END)


def begin_of(unit: Sequence[Line]) -> float:
    return next((float(fields[2]) for _, fields in unit if not is_mark(fields)), 0.0)


def read_word(unit: Sequence[Line], glm: GlobalMap | None) -> Iterator[Spoken]:
    sets = expand_line(unit[0][1], glm)
    if len(sets) > 1:
        yield from join_alternatives(sets)
    else:
        for word, begin, duration in sets[0]:
            yield Spoken(escape(word), begin + duration / 2)


def read_alternation(unit: Sequence[Line], glm: GlobalMap | None) -> Iterator[Spoken]:
    sets: list[list[Timed]] = []
    for _, fields in unit:
        if is_mark(fields):
            sets += [] if fields[COLUMNS].lower() == END else [[]]
        else:
            sets[-1] += expand_line(fields, glm)[0]
    yield from join_alternatives(sets)


def expand_line(fields: Sequence[str], glm: GlobalMap | None) -> list[list[Timed]]:
    """Return the alternatives of a line by the rules; several words share its time."""
    begin, duration = float(fields[2]), float(fields[3])
    if not glm:
        return [[(fields[COLUMNS], begin, duration)]]
    text = re.sub(r"([{}])", r" \1 ", glm.word(fields[COLUMNS])).split()
    row = [*text, *fields[COLUMNS + 1 :]] if text else []
    if len(row) <= 1:
        return [[(word, begin, duration) for word in row]]
    data = row[:-1] if CONFIDENCE.fullmatch(row[-1]) else row
    sets = re.sub("[{}]", " ", " ".join(data)).split("/")
    return [share_time(words.split(), begin, duration) for words in sets if words.split()]


def share_time(words: Sequence[str], begin: float, duration: float) -> list[Timed]:
    part = duration / len(words)
    return [
        (word, thousandths(begin + part * place), thousandths(part))
        for place, word in enumerate(words)
    ]


def thousandths(seconds: float) -> float:
    return float(f"{seconds:.3f}")


def join_alternatives(sets: Sequence[Sequence[Timed]]) -> Iterator[Spoken]:
    middles = [begin + duration / 2 for words in sets for _, begin, duration in words]
    texts = [" ".join(escape(word) for word, _, _ in words) or NULL for words in sets]
    if middles:
        yield Spoken(f"{{ {' / '.join(texts)} }}", max(middles))


def escape(word: str) -> str:
    """Return a word of a ctm, where `;` and a backslash are letters, as texts write it."""
    return re.sub(r"([\\;])", r"\\\1", word) if ";" in word or "\\" in word else word
