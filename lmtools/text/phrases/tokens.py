"""Words by which phrases are found: lower case, without punctuation, whatever the text keeps.

Symbols that tell terms apart stay (`c++`, `c#`, `r&d`), so that `C++` is never found in the word
`c`. Scripts without blanks between words are parted into letters.
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
    text = unicodedata.normalize("NFKC", word).translate(STRAIGHTEN).lower().translate(BLANKS)
    text = text if text.isascii() else UNSPACED.sub(r" \1 ", text)
    return tuple(bare for part in text.split() if (bare := part.strip("'")))


def split_text(text: str) -> list[str]:
    """Return the words for matching of a text."""
    return [token for word in text.split() for token in split_word(word)]


def is_border(letter: str) -> bool:
    """Return whether a letter at the border of a word is punctuation, no part of the word."""
    return BLANKS[ord(letter)] == " " or letter in APOSTROPHES
