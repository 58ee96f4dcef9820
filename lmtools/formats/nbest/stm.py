"""sclite's stm: a segment a line, `recording channel speaker begin end [<labels>] words`, in
seconds.

The segments of a recording are one text in the order of time, under the recording's name. Lines
that start with `;;` are comments. Only plain words are read, as of trn. A recording of two
channels, and one of which sclite ignores a part (`ignore_time_segment_in_scoring`), are refused:
a text does not say where its words were said. The format is read, not written.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats.checks import NUMBER, identifier, number, refuse_write
from lmtools.formats.nbest import trn
from lmtools.formats.registry import all_rows
from lmtools.types import Hypothesis, NBest

SUMMARY = "sclite: `recording channel speaker begin end <labels> words`; one text a recording"
FIELDS = 5  # before labels and words
LABELS = re.compile(r"<[^<>]*>")
IGNORED = "ignore_time_segment_in_scoring"

write = refuse_write


def recognises(path: Path, first: str) -> bool:
    """Return whether the name is that of an stm file, or each line has its fields."""
    return ".stm" in path.suffixes or all_rows(path, first, is_segment)


def is_segment(line: str) -> bool:
    """Return whether a line has two times, the second no earlier, and they have a decimal point or
    labels behind them, so that they are no words.
    """
    times, rest = line.split()[3:FIELDS], line.split()[FIELDS:]
    if len(times) < 2 or not all(map(NUMBER.fullmatch, times)):
        return False
    shown = any("." in time for time in times) or bool(rest and LABELS.fullmatch(rest[0]))
    return shown and 0 <= float(times[0]) <= float(times[1])


def read(path) -> Iterator[NBest]:
    """Read the texts of a file, a list of one hypothesis a recording; UserError with the line of
    what is no plain stm.
    """
    segments: dict[str, list[tuple[float, list[str]]]] = {}
    channels: dict[str, str] = {}
    for line_number, line in read_lines(path):
        if not line.strip() or line.startswith(";;"):
            continue
        where, fields = f"{path}:{line_number}", line.split()
        if len(fields) < FIELDS:
            raise UserError(
                f"{where}: expected `recording channel speaker begin end <labels> words`; correct"
                " the line"
            )
        utt, channel = identifier(fields[0], where), fields[1]
        begin, _ = number(fields[3], where, "begin"), number(fields[4], where, "end")
        if channels.setdefault(utt, channel) != channel:
            raise UserError(
                f"{where}: {utt!r} has two channels; give each its own name, such as {utt}_A"
            )
        words = fields[FIELDS + bool(fields[FIELDS:] and LABELS.fullmatch(fields[FIELDS])) :]
        if IGNORED in map(str.lower, words):
            raise UserError(
                f"{where}: a part of {utt!r} that is not scored, and hypotheses do not say which"
                " of their words are in it; score with sclite, or give Kaldi text of the rest"
            )
        segments.setdefault(utt, []).append((begin, trn.plain(" ".join(words), where)))
    for utt, parts in segments.items():
        ordered = sorted(parts, key=lambda part: part[0])
        yield NBest(utt, (Hypothesis(" ".join(word for _, words in ordered for word in words)),))
