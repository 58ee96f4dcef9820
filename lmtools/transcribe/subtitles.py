"""Words with times laid out as subtitles: two lines of 42 columns, as long on the screen as they
take to read.

Breaks are where they cost least over the whole recording (dynamic programming over words): after a
sentence, a comma or a pause rather than inside a phrase; no subtitle short, long or fast to read
where another break avoids it. The limits are those of common guides for subtitles.
"""

import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain

from lmtools.text.scripts import is_run_on, split_parts
from lmtools.transcribe.timed import TimedText

COLUMNS, LINES = 42, 2  # of a subtitle
SPEED = 17.0  # columns a second that are read with ease
LONGEST, SHORTEST, LEAST = 7.0, 1.0, 0.5  # seconds of a subtitle; at least, where words crowd
APART = 0.08  # seconds between two, two frames
PAUSE = 1.0  # seconds of silence, at which a subtitle ends
ENDS, HALTS = tuple(".?!…。？！｡．။។៕"), tuple(",;:、，；：၊៖")
UNSEEN = {"Mn", "Me", "Cf"}  # categories of letters without a column
TITLES = {"mr.", "mrs.", "ms.", "dr.", "st.", "prof.", "mt.", "vs."}  # no sentence ends with them
AFTER_HALT, INSIDE = 1.0, 4.0  # what a break costs after a phrase, after any other word
MIXED = 8.0  # more, where a sentence that ended before it could have been by itself
EACH = 2.0  # what a subtitle costs, so that there are few
HASTE = 4.0  # what a second costs that is lacking to read it


@dataclass(frozen=True)
class Cue:
    """A subtitle: its lines in `text`, from `start` to `end` in seconds."""

    start: float
    end: float
    text: str


@dataclass(frozen=True)
class Unit:
    """What no break divides: a word, or a part of one that is longer than a line; `space`: whether
    a space goes before it; `last`: whether a segment ends with it, or a phrase, which blanks show
    where none part words.
    """

    start: float
    end: float
    text: str
    space: bool = True
    last: bool = False

    @property
    def ends(self) -> bool:
        """Return whether a sentence may end with it."""
        return self.text.endswith(ENDS) and self.text.lower() not in TITLES

    @property
    def halts(self) -> bool:
        """Return whether a phrase ends with it."""
        return self.text.endswith(HALTS)


def lay_out(segments: Sequence[TimedText], duration: float) -> list[Cue]:
    """Return the subtitles of a recording, none of which overlaps another."""
    before = ["", *(segment.text for segment in segments)]
    units = list(chain.from_iterable(map(list_units, segments, before)))
    layout, cues = Layout(units), []
    for first, end in layout.choose_breaks():
        place = layout.find_break(first, end)
        lines = [layout.text(*part) for part in ((first, place), (place, end)) if part[0] < part[1]]
        cues.append(Cue(units[first].start, units[end - 1].end, "\n".join(lines)))
    return list(give_time(cues, duration))


def list_units(segment: TimedText, before: str = "") -> Iterator[Unit]:
    """Yield the words of a segment, long ones in parts, with the blanks of its text, `before` which
    another stands; without words, shares of its time.
    """
    words = segment.words or tuple(share_time(segment))
    texts = [word.text if isinstance(word, Unit) else word.word for word in words]
    spaces = [not is_run_on(before, segment.text), *find_blanks(texts, segment.text)]
    for place, word in enumerate(words):
        parts = list(divide(texts[place]))
        step = (word.end - word.start) / max(len(parts), 1)
        for number, part in enumerate(parts):
            start = word.start + number * step
            last = place == len(words) - 1 or (spaces[place + 1] and is_run_on(part, part))
            space, last = spaces[place] and number == 0, last and number == len(parts) - 1
            yield Unit(start, start + step, part, space=space, last=last)


def find_blanks(words: Sequence[str], text: str) -> Iterator[bool]:
    """Yield whether a blank stands before each word of a text but the first, as far as the text has
    the words, else as their script is written.
    """
    end = 0
    for before, word in zip(["", *words], words, strict=False):
        place = text.find(word, end)
        between = text[end:place] if place >= 0 else "?"
        if before:
            yield not is_run_on(before, word) if between.strip() else bool(between)
        end = max(end, place + len(word))


def share_time(segment: TimedText) -> Iterator[Unit]:
    texts = split_parts(segment.text)
    step = (segment.end - segment.start) / max(sum(map(len, texts)), 1)
    start = segment.start
    for text in texts:
        yield Unit(start, start + step * len(text), text)
        start += step * len(text)


def divide(word: str) -> Iterator[str]:
    """Yield parts of a word, each of a line at most."""
    part = ""
    letters = ([one] if width(one) <= COLUMNS else one for one in split_parts(word))
    for letter in chain.from_iterable(letters):
        if width(part + letter) > COLUMNS:
            yield part
            part = ""
        part += letter
    if part:
        yield part


def width(text: str) -> int:
    """Return the columns that a text takes, wide letters two, signs above and below none."""
    if text.isascii():
        return len(text)
    seen = [letter for letter in text if unicodedata.category(letter) not in UNSEEN]
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in seen)


class Layout:
    """Units in a row, and how many columns those before each take."""

    def __init__(self, units: Sequence[Unit]):
        self.units = units
        self.before = list(accumulate((unit.space + width(unit.text) for unit in units), initial=0))
        self.ended = list(accumulate((unit.ends for unit in units), initial=0))

    def columns(self, first: int, end: int) -> int:
        """Return the columns of units in one line."""
        return self.before[end] - self.before[first] - self.units[first].space

    def text(self, first: int, end: int) -> str:
        return "".join(" " * unit.space + unit.text for unit in self.units[first:end]).lstrip(" ")

    def find_break(self, first: int, end: int) -> int | None:
        """Return where the second line begins (`end`: one line holds all), None where two lines
        cannot: lines of equal length, rather after a comma. Segments that no blank and no comma
        parts have a line each.
        """
        places = range(first + 1, end)
        if self.columns(first, end) <= COLUMNS:
            places = [place for place in places if self.runs_on(place)]
            if not places:
                return end
        places = [
            (abs(self.columns(first, place) - self.columns(place, end)) - bonus, place)
            for place in places
            if max(self.columns(first, place), self.columns(place, end)) <= COLUMNS
            for bonus in [12 * (self.units[place - 1].ends or self.units[place - 1].halts)]
        ]
        return min(places)[1] if places else None

    def runs_on(self, place: int) -> bool:
        """Return whether a segment begins at a unit of which nothing in the text tells."""
        before = self.units[place - 1]
        return before.last and not self.units[place].space and not (before.ends or before.halts)

    def fits(self, first: int, end: int) -> bool:
        """Return whether units may stand together: no pause before the last, time and lines."""
        last, before = self.units[end - 1], self.units[end - 2]
        if last.start - before.end > PAUSE or last.end - self.units[first].start > LONGEST:
            return False
        if self.columns(first, end) > LINES * COLUMNS + 1:
            return False
        return self.find_break(first, end) is not None

    def weigh(self, first: int, end: int) -> float:
        """Return what a subtitle of these units costs: its end inside a phrase, haste, brevity."""
        last, begin = self.units[end - 1], self.units[first].start
        cost = EACH
        if not last.ends:
            cost += AFTER_HALT if last.last or last.halts else INSIDE
            cost += MIXED * (self.ended[end] > self.ended[first])
        until = self.units[end].start - APART if end < len(self.units) else last.end + SHORTEST
        wanted = max(SHORTEST, self.columns(first, end) / SPEED)
        return cost + HASTE * max(0.0, wanted - max(until - begin, 0.0))

    def choose_breaks(self) -> list[tuple[int, int]]:
        """Return the first unit of each subtitle and that behind its last, at least cost."""
        count = len(self.units)
        best, back = [0.0, *[math.inf] * count], [0] * (count + 1)
        for first in range(count):
            for end in range(first + 1, count + 1):
                if end > first + 1 and not self.fits(first, end):
                    break
                cost = best[first] + self.weigh(first, end)
                if cost < best[end]:
                    best[end], back[end] = cost, first
        breaks, end = [], count
        while end:
            breaks.append((back[end], end))
            end = back[end]
        return breaks[::-1]


def give_time(cues: Sequence[Cue], duration: float) -> Iterator[Cue]:
    """Yield subtitles that stay until they are read, or the next one comes, and no longer than
    LONGEST or the recording; where that leaves too little time, they come up to a second earlier,
    if none is on the screen, and in any case so early that each has LEAST.
    """
    free, count = 0.0, max(len(cues), 1)
    duration = duration or max((cue.end for cue in cues), default=0.0)
    apart = min(APART, duration / count / 6)
    least = min(LEAST, duration / count - apart)
    for place, cue in enumerate(cues):
        last = duration - (count - 1 - place) * (least + apart)  # those behind have time, too
        after = cues[place + 1].start - apart if place + 1 < count else last
        wanted = max(SHORTEST, width(cue.text.replace("\n", " ")) / SPEED)
        start = min(max(cue.start, free), last - least)
        end = max(min(max(cue.end, start + wanted), after), start + least)
        end = min(end, last, start + LONGEST)
        start = min(start, max(end - wanted, free, start - SHORTEST))
        free = end + apart
        yield replace(cue, start=round(start, 3), end=round(end, 3))
