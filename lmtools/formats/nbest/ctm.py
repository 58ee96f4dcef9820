"""sclite's ctm: a word a line, `utt channel start duration word [confidence]`, in seconds.

The words of an utterance go by their starts, in whatever order the lines are. A confidence is a
probability, or `NA` where there is none. The columns besides the word are kept as the extra
`times`, a line a word. A text without them, or with another number of words, is written with
made-up times, a tenth of a second a word, which is said, and not read back as times. Times that
another format holds (`marks`) are taken. An utterance without
words is the comment `;; utt is empty`, which other readers skip. Alternations (`<ALT_BEGIN>`) are
refused; other lines that start with `;;` are comments.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.base.log import say
from lmtools.formats.checks import NUMBER, identifier, number, only_hypothesis, write_lines
from lmtools.formats.marks import NONE, WordMark, read_marks
from lmtools.formats.registry import all_rows
from lmtools.types import Hypothesis, NBest

SUMMARY = "sclite: `utt channel start duration word`; one hypothesis an utterance"
EMPTY = re.compile(r";; (\S+) is empty")
TIMES = re.compile(r"\S+ \S+ \S+( \S+)?")
OVERLAP = 4  # of so many words one stands in another: outputs of two systems
Line = tuple[str, int, list[str]]  # where, number of the block of an utterance's lines, columns


def recognises(path: Path, first: str) -> bool:
    """Return whether the name is that of a ctm file, or each line has its columns."""
    return ".ctm" in path.suffixes or all_rows(path, first, is_word)


def is_word(line: str) -> bool:
    """Return whether a line has two times, one with a point, a word and perhaps a confidence."""
    columns = line.split()
    numbers = [*columns[2:4], *(column for column in columns[5:] if column != NONE)]
    if len(columns) not in (5, 6) or not all(map(NUMBER.fullmatch, numbers)):
        return False
    return any("." in time for time in columns[2:4])


def read(path) -> Iterator[NBest]:
    """Yield lists of one hypothesis without scores; UserError with the line of no plain ctm."""
    utterances: dict[str, list[Line]] = {}
    for block, (_, lines) in enumerate(groupby(read_rows(path), key=lambda row: row[1])):
        for where, utt, columns in lines:
            utterances.setdefault(utt, []).append((where, block, columns))
    for utt, lines in utterances.items():
        words = in_time([line for line in lines if line[2]], utt)
        times = [" ".join((*row[:3], *row[4:])) for row in words]
        extra = {"times": "\n".join(times)} if times != made_up(len(times)) else {}
        yield NBest(utt, (Hypothesis(" ".join(row[3] for row in words), {}, extra),))


def in_time(lines: Sequence[Line], utt: str) -> list[list[str]]:
    """Return the columns of words by their starts, those of equal starts as they stand; UserError
    for two channels, and where the words of one place stand inside those of another.
    """
    if mixed := [where for where, _, row in lines if row[0] != lines[0][2][0]]:
        raise UserError(
            f"{mixed[0]}: {utt!r} has two channels; give each its own id, such as {utt}_A"
        )
    ordered = sorted(lines, key=lambda line: float(line[2][1]))
    twice = [
        max(pair, key=lambda line: line[1])[0]
        for pair in pairwise(ordered)
        if pair[0][1] != pair[1][1]
        and float(pair[0][2][1]) + float(pair[0][2][2]) / 2 > float(pair[1][2][1])
    ]
    if OVERLAP * len(twice) >= len(ordered) > 0:
        raise UserError(
            f"{twice[0]}: utterance {utt!r} occurs a second time, with other words at the same"
            " times; keep one of them"
        )
    return [row for *_, row in ordered]


def read_rows(path) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (where, utterance, other columns) of each word; none for an empty utterance."""
    for line_number, line in read_lines(path):
        where = f"{path}:{line_number}"
        if match := EMPTY.fullmatch(line):
            yield where, identifier(match[1], where), []
        elif line.strip() and not line.startswith(";;"):
            utt, *columns = line.split()
            if len(columns) not in (4, 5) or columns[3].startswith("<ALT"):
                raise UserError(
                    f"{where}: expected `utt channel start duration word [confidence]`, no"
                    " alternations; correct the line"
                )
            check_numbers(columns, where)
            yield where, identifier(utt, where), columns


def check_numbers(columns: Sequence[str], where: str) -> None:
    """Raise UserError for times that are none, and for a confidence that is no probability."""
    number(columns[1], where, "start")
    if number(columns[2], where, "duration") < 0:
        raise UserError(f"{where}: duration is {columns[2]}; expected seconds from 0 on")
    for text in columns[4:]:
        if text != NONE and not 0 <= number(text, where, "confidence") <= 1:
            raise UserError(
                f"{where}: confidence is {text}; expected a probability from 0 to 1, or NA for"
                " none: divide percent by 100"
            )


def spell_mark(mark: WordMark) -> str:
    """Return the columns of a word's times and, if known, its confidence."""
    confidence = "" if mark.confidence is None else f" {mark.confidence:g}"
    return f"1 {mark.start:.2f} {max(mark.end - mark.start, 0):.2f}{confidence}"


def made_up(words: int) -> list[str]:
    """Make up the times of a text that has none."""
    return [f"1 {place / 10:.2f} 0.10" for place in range(words)]


def write(nbests: Iterable[NBest], path) -> None:
    """Write the only hypothesis of each list, without scores; UserError for longer lists."""
    untimed: list[str] = []
    write_lines(nbests, path, lambda nbest, where: spell_list(nbest, path, where, untimed))
    tell_untimed(untimed, path)


def tell_untimed(utts: Sequence[str], path) -> None:
    """Say of which utterances no times of words were read."""
    if utts:
        more = f" and {len(utts) - 1} more" if len(utts) > 1 else ""
        say(f"{path}: no times of words were read of {utts[0]!r}{more}: 0.1 s a word is made up")


def spell_list(nbest: NBest, path, where: str, untimed: list[str]) -> Iterator[str]:
    hyp = only_hypothesis(nbest, path)
    if nbest.utt.startswith(";;"):
        raise UserError(f"{where}: starts a comment in ctm; rename it")
    if not hyp:
        return
    words = hyp.text.split()
    times = hyp.extra.get("times", "").split("\n")
    if len(times) != len(words) or not all(TIMES.fullmatch(row) for row in times):
        try:
            marks = read_marks(hyp)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
        times = made_up(len(words)) if marks is None else [spell_mark(mark) for mark in marks]
        untimed += [nbest.utt] if words and marks is None else []
    if not words:
        yield f";; {nbest.utt} is empty"
    for word, row in zip(words, times, strict=True):
        if word.startswith("<ALT"):
            raise UserError(f"{where}: {word!r} is markup in ctm; replace it by a plain word")
        channel, start, duration, *confidence = row.split(" ")
        yield " ".join((nbest.utt, channel, start, duration, word, *confidence))
