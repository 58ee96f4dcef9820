"""Subword marks in other programs' output, joined to words: subword-nmt's `blue fin@@ ch`,
SentencePiece's `▁blue ▁fin ch`.
"""

import math
from collections.abc import Iterable

from lmtools.base.errors import UserError
from lmtools.formats.checks import number

MARKS = ("subword_nmt", "sentencepiece", "none")
END = "</s>"  # the end of the sentence, which Marian's --no-spm-decode writes as its last piece


def check_marks(name: str, spec: str) -> str:
    """Return `name` if it is one of MARKS; UserError about the option `spec` otherwise."""
    if name not in MARKS:
        raise UserError(f"{spec}={name}: no such subword marks; known are {', '.join(MARKS)}")
    return name


def guess_marks(texts: Iterable[str]) -> str:
    """Guess the marks of `texts`: `@@` at the end of any word, or ▁ at the head of each text."""
    texts = [text for text in texts if text.strip()]
    if any(word.endswith("@@") for text in texts for word in text.split()):
        return "subword_nmt"
    if texts and all(text.lstrip().startswith("▁") for text in texts):
        return "sentencepiece"
    return "none"


def join_pieces(text: str, marks: str) -> str:
    """Return the words of `text`, its pieces joined as `marks` says, without END as the last."""
    pieces = text.split()
    if marks != "none" and pieces[-1:] == [END]:
        pieces.pop()
    words = " ".join(pieces)
    if marks == "subword_nmt":
        return f"{words} ".replace("@@ ", "").rstrip()
    if marks == "sentencepiece" and "▁" in words:
        return " ".join(words.replace(" ", "").replace("▁", " ").split())
    return words


# One of each in natural logarithms; a bytelog is a logarithm to base 1.0001 divided by 1024, for
# which SRILM takes 1/ln 1.0001 as 10000.5.
BASE2 = math.log(2)
BASE10 = math.log(10)
BYTELOG = 1024 / 10000.5


def parse_in_unit(text: str, unit: float, where: str, what: str) -> float:
    """Parse `text`, a number in `unit`, as a natural logarithm; UserError unless it is finite."""
    value = number(text, where, what) * unit
    if not math.isfinite(value):
        raise UserError(
            f"{where}: {what} is {text!r}, too large to convert; find out what wrote it"
        )
    return value


def spell_in_unit(value: float, unit: float = 1.0) -> str:
    """Spell `value` in units of `unit` as the shortest decimal that is exact, if one is."""
    quotient = value / unit
    for digits in range(15, 18):
        text = f"{quotient:.{digits}g}"
        if float(text) * unit == value:
            break
    return text
