"""Forms of Unicode in which texts of the same words differ, and what makes them one: composed and
decomposed accents, curly and straight apostrophes, invisible characters, blanks between Chinese
characters, digits of other scripts.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, reduce

from lmtools.base.errors import UserError
from lmtools.text.normaliser import STRAIGHTEN
from lmtools.text.scripts import join_characters

# What parts words where no blank can be seen: the zero-width space and non-joiner
SEPARATORS = dict.fromkeys((0x200B, 0x200C), " ")
# Marks of category Cf that are seen stand before Arabic and Syriac digits; of other categories are
# tatweel, the grapheme joiner, fillers of Hangul, and selectors of variants
SEEN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
UNSEEN = {0x640, 0x34F, 0x115F, 0x1160, 0x3164, 0xFFA0, *range(0x180B, 0x1810)}
UNSEEN |= {*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
DASHES = str.maketrans(dict.fromkeys("‐‑‒–—―⁃−﹘﹣－", "-"))
QUOTES = str.maketrans(dict.fromkeys("“”„‟«»″＂", '"'))
# Letters of the Latin script with a stroke and ligatures, which have no decomposition
STROKES = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "ı": "i", "ß": "ss", "æ": "ae"}
)
STROKES |= str.maketrans({"Ø": "O", "Ł": "L", "Đ": "D", "Ħ": "H", "Ŧ": "T", "œ": "oe", "Æ": "AE"})
# Accents of alphabets (Latin, Greek, Cyrillic, Hebrew, Arabic with hamza); й is a letter of its own
ACCENTS = re.compile(
    "(?<![иИ])\u0306|[\u0300-\u0305\u0307-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4"
    "\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed]"
)
# One letter of several codes: yeh, kaf, heh and alef of Arabic and Persian keyboards, s and t with
# cedilla and with comma of Romanian ones
ALIKE = str.maketrans("يىكةەٱşţŞŢ", "ییکههاșțȘȚ")
CYRILLIC = str.maketrans("aceiopxyABCEHIKMOPTXY", "асеіорхуАВСЕНІКМОРТХУ")
MIXED = re.compile(
    r"\b(?=\w*[\u0400-\u04ff])(?=\w*[A-Za-z])[\u0400-\u04ffaceiopxyABCEHIKMOPTXY]+\b"
)

CUTS = re.compile(r"(?<=\S)@@(?:\s|$)|\s##(?=\w)")  # between pieces of one word


class Invisible(dict):
    """A table, filled as characters turn up, that takes out what is not seen."""

    def __missing__(self, point: int) -> str | None:
        letter = chr(point)
        category = unicodedata.category(letter)
        unseen = (category == "Cf" and point not in SEEN) or point in UNSEEN
        control = category == "Cc" and not letter.isspace()
        self[point] = None if unseen or control else letter
        return self[point]


class Digits(dict):
    """A table, filled as characters turn up, of decimal digits of any script to 0-9."""

    def __missing__(self, point: int) -> str:
        digit = unicodedata.decimal(chr(point), None)
        self[point] = chr(point) if digit is None else str(digit)
        return self[point]


INVISIBLE, DIGITS = Invisible(), Digits()


def strip_accents(text: str) -> str:
    """Return `text` without accents, points and strokes of alphabets."""
    bare = ACCENTS.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", bare).translate(STROKES)


def merge_letters(text: str) -> str:
    """Return `text` with one code for letters that look alike, Cyrillic among Cyrillic ones."""
    return MIXED.sub(lambda word: word[0].translate(CYRILLIC), text).translate(ALIKE)


def join_pieces(text: str) -> str:
    """Return `text` with the words whole that subword marks cut: `fin@@ ch`, `▁fin ch` .."""
    text = CUTS.sub("", text)
    return "".join(text.split()).replace("▁", " ") if "▁" in text else text


@dataclass(frozen=True)
class Unifier:
    """One difference taken away: `change` rewrites a text, `folds`: words may become the same."""

    about: str
    change: Callable[[str], str]
    folds: bool = False


def translate(table) -> Callable[[str], str]:
    """Return a function that puts a table's characters in the place of others."""
    return lambda text: text if text.isascii() else text.translate(table)


# In the order in which they are applied: compatibility forms take an acute accent apart that may be
# an apostrophe.
UNIFIERS = {
    "pieces": Unifier("with the pieces of subwords joined", join_pieces),
    "apostrophes": Unifier("with straight apostrophes", lambda text: text.translate(STRAIGHTEN)),
    "dashes": Unifier("with hyphens for dashes", translate(DASHES)),
    "quotes": Unifier("with straight quotation marks", translate(QUOTES)),
    "nfc": Unifier("with letters and accents joined", partial(unicodedata.normalize, "NFC")),
    "invisible": Unifier(
        "without invisible characters (zero-width, soft hyphen, byte-order mark, tatweel)",
        lambda text: text.translate(INVISIBLE),
    ),
    "separators": Unifier(
        "with blanks for zero-width spaces and non-joiners", translate(SEPARATORS)
    ),
    "digits": Unifier("with digits 0-9 for those of other scripts", translate(DIGITS)),
    "nfkc": Unifier(
        "with ordinary forms for full-width, half-width and joined letters",
        partial(unicodedata.normalize, "NFKC"),
    ),
    "blanks": Unifier("without blanks beside Chinese, Japanese, Thai .. letters", join_characters),
    "letters": Unifier("with one code for letters that look alike", merge_letters, folds=True),
    "diacritics": Unifier("without diacritics", strip_accents, folds=True),
}
FIRST = ("separators",)  # what `invisible` would take out


def unifier(names: Iterable[str]) -> Callable[[str], str]:
    """Return the function that applies those of UNIFIERS, in an order of its own, until nothing
    changes, and leaves single spaces between words. UserError for a name that is none of them.
    """
    names = set(names)
    if unknown := sorted(names - UNIFIERS.keys()):
        raise UserError(f"{unknown[0]:.20}: no form of Unicode; known are {','.join(UNIFIERS)}")
    order = [name for name in (*FIRST, *UNIFIERS) if name in names]
    changes = [UNIFIERS[name].change for name in dict.fromkeys(order)]

    def unify(text: str) -> str:
        written = " ".join(reduce(lambda part, change: change(part), changes, text).split())
        # one form may bring about what another takes away
        return written if written == text else unify(written)

    return unify
