"""Scripts that put no blanks between words: their letters, texts cut into these letters and other
words, and the language and blanks of a collection of texts. Nothing else tests for a script.
"""

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

CHINESE, JAPANESE = "Chinese", "Japanese"
IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
LETTERS = {
    CHINESE: IDEOGRAPHS,
    JAPANESE: "\u3041-\u309f\u30a1-\u30ff\u31f0-\u31ff\uff66-\uff9f",
    "Thai": "\u0e00-\u0e7f",
    "Lao": "\u0e80-\u0eff",
    "Tibetan": "\u0f00-\u0fff",
    "Burmese": "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f",
    "Khmer": "\u1780-\u17ff\u19e0-\u19ff",
}
# Beside them their punctuation, and bopomofo; full-width Latin letters and digits make words
OTHERS = "\u3001-\u3040\u30a0\u3100-\u312f\u31a0-\u31bf\uff01-\uff0f\uff1a-\uff20\uff61-\uff65"
BLANKLESS = "".join(LETTERS.values()) + OTHERS
HAN, CHARACTER = re.compile(f"[{IDEOGRAPHS}]"), re.compile(f"[{BLANKLESS}]")
LANGUAGES = {name: re.compile(f"[{letters}]") for name, letters in LETTERS.items()}
AROUND = re.compile(rf"(?<=[{BLANKLESS}])\s+|\s+(?=[{BLANKLESS}])")
BETWEEN = re.compile(rf"(?<=[{BLANKLESS}])[\s\u200b]+(?=[{BLANKLESS}])")
# Vowels and tones above and below a letter, variants of it, and joiners belong to the letter
SIGNS = "".join(c for c in map(chr, range(0xE00, 0x1800)) if unicodedata.category(c)[0] == "M")
SIGNS += "\u3099\u309a\u302a-\u302f\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef"
UNIT = re.compile(f"[{BLANKLESS}][{SIGNS}]*")
RUN = re.compile(rf"[{BLANKLESS}{SIGNS}]+")
# No line begins or ends with these: punctuation, small kana, vowels of Thai and Lao
CLOSING = (
    "、。，．：；？！…」』）》〉】〕”’ー々ゝゞぁぃぅぇぉっゃゅょァィゥェォッャュョะาำๆฯະາຳໆ၊။។៕៖"
)
OPENING = "「『（《〈【〔“‘เแโใไເແໂໃໄ"
PART = re.compile(
    rf"[{OPENING}]*(?:(?![{OPENING}]){UNIT.pattern}|[^\s{BLANKLESS}]+)[{CLOSING}{SIGNS}]*|\S"
)
TAIL = re.compile(rf"[{BLANKLESS}{SIGNS}][^\w\s]*$")

LOOKED_AT = 2000  # texts
SHARE = 0.2  # of all letters, from which texts are of a language
KANA = 0.05  # of Chinese characters and kana, from which these are Japanese
# The letters a word, on average, that no language has which puts blanks between words
LONGEST, LONGEST_ELSEWHERE = {CHINESE: 4, JAPANESE: 4}, 5


def split_units(text: str) -> list[str]:
    """Return the words of a text; of scripts that put no blanks between words, each letter with the
    signs that belong to it. These are the units in which texts are counted and compared.
    """
    if text.isascii() or not CHARACTER.search(text):
        return text.split()
    return UNIT.sub(r" \g<0> ", text.replace("\u200b", " ")).split()


def split_parts(text: str) -> list[str]:
    """Return the parts of a text between which a line may break: what stands between blanks, and
    in it letters as of `split_units`, with the signs and punctuation that stay at them.
    """
    return text.split() if text.isascii() else PART.findall(text)


def split_letters(text: str) -> str:
    """Return the units of a text with single blanks between them."""
    return " ".join(split_units(text))


def join_characters(text: str) -> str:
    """Return `text` without blanks beside characters of scripts that put none between words."""
    return text if text.isascii() else AROUND.sub("", text)


def join_texts(texts: Iterable[str]) -> str:
    """Return texts in one line, with a blank where both sides are not of such a script."""
    pairs = pairwise(["", *filter(None, texts)])
    return "".join(
        " " * (before > "" and not is_run_on(before, text)) + text for before, text in pairs
    )


def is_run_on(before: str, after: str) -> bool:
    """Return whether texts, one behind the other, have no blank between them."""
    return bool(TAIL.search(before[-9:]) and CHARACTER.match(after))


@dataclass(frozen=True)
class Spacing:
    """Language of texts written without blanks (None: others), and whether they have blanks."""

    language: str | None
    blanks: bool = False

    @property
    def bare(self) -> bool:
        """Return whether nothing shows where words begin, so that letters are counted."""
        return self.language is not None and not self.blanks


@functools.cache
def name_language(letter: str) -> str | None:
    return next((name for name, letters in LANGUAGES.items() if letters.match(letter)), None)


def find_spacing(texts: Iterable[str]) -> Spacing:
    """Find the language of the first LOOKED_AT texts and how they use blanks."""
    letters: Counter = Counter()
    blanks = runs = 0
    for text, _ in zip(texts, range(LOOKED_AT), strict=False):
        letters.update(filter(str.isalpha, text))
        if not text.isascii():
            blanks += len(BETWEEN.findall(text))
            runs += len(RUN.findall(text))
    languages: Counter = Counter()
    for letter, count in letters.items():
        if language := name_language(letter):
            languages[language] += count
    size = languages.total()
    if size <= SHARE * letters.total() or not size:
        return Spacing(None)
    language = languages.most_common(1)[0][0]
    if languages[JAPANESE] > KANA * (languages[CHINESE] + languages[JAPANESE]):
        language = max(JAPANESE, language, key=lambda name: languages[name] * (name != CHINESE))
    return Spacing(language, blanks > 0 and size < LONGEST.get(language, LONGEST_ELSEWHERE) * runs)
