"""sclite's stm: a segment a line, `recording channel speaker begin end [<labels>] words`, in
seconds.

The segments of a recording are one text in the order of time, under the recording's name. Lines
that start with `;;` are comments. Only plain words are read, as of trn. A recording of two
channels, and one of which sclite ignores a part (`ignore_time_segment_in_scoring`), are refused:
a text does not say where its words were said. The format is read, not written.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.base.log import say
from lmtools.formats.checks import NUMBER, identifier, number, refuse_write
from lmtools.formats.nbest import trn
from lmtools.formats.registry import all_rows
from lmtools.types import SPEAKER, Hypothesis, NBest

SUMMARY = "sclite: `recording channel speaker begin end <labels> words`; one text a recording"
FIELDS = 5  # before labels and words
LABELS = re.compile(r"<[^<>]*>")
IGNORED = "ignore_time_segment_in_scoring"

write = refuse_write


def recognises(path: Path, first: str) -> bool:
    """Return whether the name is that of an stm file, or each line has its fields."""
    rttm = first.startswith("SPEAKER ") and "<NA>" in first
    return ".stm" in path.suffixes or (not rttm and all_rows(path, first, is_segment))


def is_segment(line: str) -> bool:
    """Return whether a line has two rising times that a point or labels tell from words."""
    times, rest = line.split()[3:FIELDS], line.split()[FIELDS:]
    if len(times) < 2 or not all(map(NUMBER.fullmatch, times)):
        return False
    shown = any("." in time for time in times) or bool(rest and LABELS.fullmatch(rest[0]))
    return shown and 0 <= float(times[0]) <= float(times[1])


@dataclass(frozen=True)
class StmSegment:
    """A line of an stm: who says what in which time of a recording, in seconds."""

    recording: str
    channel: str
    speaker: str
    begin: float
    end: float
    label: str
    text: str

    @property
    def ignored(self) -> bool:
        """Whether sclite leaves this part of a recording out of the count."""
        return IGNORED in self.text.lower().split()


def read_segments(path) -> Iterator[tuple[str, StmSegment]]:
    """Yield where each segment stands, and the segment; UserError with the line of none."""
    for line_number, line in read_lines(path):
        if not line.strip() or line.startswith(";;"):
            continue
        where, fields = f"{path}:{line_number}", line.split()
        if len(fields) < FIELDS:
            raise UserError(
                f"{where}: expected `recording channel speaker begin end <labels> words`; correct"
                " the line"
            )
        begin, end = number(fields[3], where, "begin"), number(fields[4], where, "end")
        label = fields[FIELDS] if fields[FIELDS:] and LABELS.fullmatch(fields[FIELDS]) else ""
        text = " ".join(fields[FIELDS + bool(label) :])
        segment = StmSegment(*fields[:3], begin=begin, end=end, label=label.strip("<>"), text=text)
        yield where, segment


def read(path) -> Iterator[NBest]:
    """Read the texts, a list of one hypothesis a recording; UserError for no plain stm."""
    segments: dict[str, list[tuple[float, list[str]]]] = {}
    channels: dict[str, str] = {}
    turns: dict[str, list[StmSegment]] = {}
    for where, segment in read_segments(path):
        utt, channel = identifier(segment.recording, where), segment.channel
        if channels.setdefault(utt, channel) != channel:
            raise UserError(
                f"{where}: {utt!r} has two channels; give each its own name, such as {utt}_A"
            )
        if segment.ignored:
            raise UserError(
                f"{where}: a part of {utt!r} that is not scored, and hypotheses do not say which"
                " of their words are in it; score with sclite, or give Kaldi text of the rest"
            )
        segments.setdefault(utt, []).append((segment.begin, trn.plain(segment.text, where)))
        turns.setdefault(utt, []).append(segment)
    for utt, parts in segments.items():
        ordered = sorted(parts, key=lambda part: part[0])
        text = " ".join(word for _, words in ordered for word in words)
        speakers = {turn.speaker for turn in turns[utt]}
        extra = {SPEAKER: speakers.pop() if len(speakers) == 1 else ""}
        yield NBest(utt, (Hypothesis(text),), extra=extra)
    warn_overlaps(path, turns.values())


def read_channels(path) -> dict[tuple[str, str], list[StmSegment]]:
    """Read the segments of each recording and channel, both in lower case, in the order of time;
    UserError for no plain stm.
    """
    channels: dict[tuple[str, str], list[StmSegment]] = {}
    for where, segment in read_segments(path):
        trn.plain(segment.text, where)
        names = segment.recording.lower(), segment.channel.lower()
        channels.setdefault(names, []).append(segment)
    if not channels:
        raise UserError(f"{path}: holds no segment; give an stm file")
    warn_overlaps(path, channels.values())
    return {names: sorted(rows, key=lambda row: row.begin) for names, rows in channels.items()}


def warn_overlaps(path, channels: Iterable[Sequence[StmSegment]]) -> None:
    """Say how many segments begin inside one of another speaker, and the first."""
    if both := [pair for rows in channels for pair in find_overlaps(rows)]:
        other = both[0][1]
        say(
            f"warning: {path}: {len(both)} segments begin while another speaker has the word (first"
            f" {other.speaker!r} at {other.begin:g} s of {other.recording!r}): a text in the order"
            " of time mixes their words, so that right ones count as errors; give each speaker a"
            " recording of their own, or score by cpWER"
        )


def find_overlaps(turns: Sequence[StmSegment]) -> Iterator[tuple[StmSegment, StmSegment]]:
    """Yield each segment that begins inside one of another speaker, with that one before it."""
    last: dict[str, StmSegment] = {}
    for turn in sorted((turn for turn in turns if turn.text), key=lambda turn: turn.begin):
        others = (one for who, one in last.items() if who != turn.speaker and one.end > turn.begin)
        if other := next(others, None):
            yield other, turn
        if turn.speaker not in last or last[turn.speaker].end < turn.end:
            last[turn.speaker] = turn
