"""Words by which phrases are found: without case (`STRASSE` is `straße`, `İ` is `i`) and
punctuation, whatever the text keeps.

Apostrophes at the borders of a word stay (`it'`); `PhraseAutomaton` passes over those that no
phrase has. Symbols that tell terms apart stay (`c++`, `c#`, `r&d`), so that `C++` is never found in
the word `c`. Scripts without blanks between words are parted into letters.
"""

import functools
import re
import unicodedata

from lmtools.text.normaliser import APOSTROPHES, STRAIGHTEN

KEPT = "#&@%*\\"  # punctuation of Unicode that is part of terms
# Han, kana, Thai, Lao, Tibetan, Myanmar, Khmer
UNSPACED = re.compile(
    "([\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff])"
)


class Blanks(dict):
    """A table, filled as characters turn up, of punctuation to blanks."""

    def __missing__(self, point: int) -> str:
        letter = chr(point)
        blank = unicodedata.category(letter)[0] == "P" and letter not in KEPT
        self[point] = " " if blank and letter not in APOSTROPHES else letter
        return self[point]


BLANKS = Blanks()


@functools.lru_cache(maxsize=1 << 16)
def split_word(word: str) -> tuple[str, ...]:
    """Return the words for matching in one word of a text: none of punctuation alone, several of a
    hyphenated one.
    """
    if word.isascii() and word.isalpha():
        return (word.lower(),)
    text = unicodedata.normalize("NFKC", word).translate(STRAIGHTEN).translate(BLANKS)
    if not text.isascii():
        text = fold(UNSPACED.sub(r" \1 ", text))
    return tuple(part for part in text.lower().split() if part.strip("'"))


def fold(text: str) -> str:
    """Return a text without case, as Unicode folds it; the dot of a Turkish `İ` is that of `i`."""
    return unicodedata.normalize("NFKC", text.casefold().replace("i\u0307", "i"))


def split_text(text: str) -> list[str]:
    """Return the words for matching of a text."""
    return [token for word in text.split() for token in split_word(word)]


def is_border(letter: str) -> bool:
    """Return whether a letter at the border of a word is punctuation, no part of the word."""
    return BLANKS[ord(letter)] == " " or letter in APOSTROPHES
