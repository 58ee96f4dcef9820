"""The normalisers that Whisper's error rates are measured with, as the package whisper-normalizer
has them, and that of the Open ASR leaderboard, which is Whisper's English one with a few rules more
and fewer.
"""

import functools
import importlib
import re
from collections.abc import Callable
from unicodedata import category

from lmtools.base.errors import UserError
from lmtools.base.log import say

PACKAGE = "whisper-normalizer"
MADE = {n: "".join(f"\\{place}" for place in range(1, n + 1)) for n in (2, 3, 4)}
# Rules -> module and class of the package, and the options of the class
RULES: dict[str, tuple[str, str, dict[str, bool]]] = {
    "english": ("english", "EnglishTextNormalizer", {}),
    "basic": ("basic", "BasicTextNormalizer", {}),
    "basic-marks": ("basic", "BasicTextNormalizer", {"preserve_marks": True}),
    "basic-letters": ("basic", "BasicTextNormalizer", {"split_letters": True}),
}
LEADERBOARD = "open-asr"  # the leaderboard's, made of the English ones
NAMES = {f"whisper-{rules}": rules for rules in RULES} | {LEADERBOARD: LEADERBOARD}
IGNORED = r"\b(hmm|mm|mhm|mmm|uh|um)\b"  # before abbreviations are joined, which may look so
DROPPED = ("kinda", "sorta", "dunno", "cause")  # contractions that only the package writes out
ABBREVIATIONS = [  # of two to four letters with points: `u.s.a.`, `u. s. a.`, plurals and genitives
    (r"\b([a-z])\.([a-z])\.([a-z])\.s\b", r"\1\2\3s"),
    *((r"\b" + r"\.".join(["([a-z])"] * n) + r"\.?\b", MADE[n]) for n in (4, 3, 2)),
    *((r"\b" + r"\.\s+".join(["([a-z])"] * n) + r"\.\b", MADE[n]) for n in (4, 3, 2)),
    (r"\b([a-z])\.([a-z])\.([a-z])\.'s\b", r"\1\2\3s"),
]
ELLIPSES = [(r"\.{3,}\s*$", ""), (r"\s*\.{3,}\s*", " ")]
# What stands for a bracket that nothing closes: to the package both are signs, but it looks for the
# end of each bracket, in time that grows with the square of their number.
SIGN = "*"
# Scripts whose vowels are marks: from Devanagari to Burmese, and Khmer; a syllable with a mark
SIGNED, SYLLABLE = re.compile("[\u0900-\u109f\u1780-\u17ff]+"), "\u0915\u093f"
MARKUP = "<["
INSIDE = re.compile(r"[<\[][^>\]]*[>\]]")


class Leaderboard:
    """The Open ASR leaderboard's normaliser: English rules behind its own, without DROPPED."""

    def __init__(self, english):
        self.english = english
        english.ignore_patterns = r"(?!)"  # nothing: it is done here, before abbreviations
        english.replacers = {
            pattern: text
            for pattern, text in english.replacers.items()
            if pattern.strip("\\b") not in DROPPED
        }

    def __call__(self, text: str) -> str:
        text = text.lower()
        for pattern, replacement in ELLIPSES:
            text = re.sub(pattern, replacement, text)
        text = re.sub(r"\(([^)]+?)\)", "", INSIDE.sub("", text))
        text = re.sub(r"\s+'", "'", re.sub(IGNORED, "", text))
        for pattern, replacement in ABBREVIATIONS:
            text = re.sub(pattern, replacement, text)
        return self.english(text)


@functools.cache
def load_rules(rules: str) -> Callable[[str], str]:
    """Return the function text -> text of the package; UserError where it is not installed."""
    if rules == LEADERBOARD:
        return Leaderboard(load_rules.__wrapped__("english"))
    module, name, options = RULES[rules]
    try:
        return getattr(importlib.import_module(f"whisper_normalizer.{module}"), name)(**options)
    except ImportError:
        raise UserError(
            f"normaliser whisper-{rules}: needs {PACKAGE}; pip install {PACKAGE}"
        ) from None


def apply_rules(text: str, rules: str) -> str:
    """Return what the package makes of the text, with single spaces; of numbers that Python cannot
    convert by the basic rules.
    """
    text = drop_brackets(" ".join(text.split()))
    if removes_signs(text, rules):
        warn_of_signs(rules)
    try:
        written = load_rules(rules)(text)
    except (AssertionError, ValueError):
        written = load_rules("basic")(text)
    return " ".join(written.split())


def removes_signs(text: str, rules: str) -> bool:
    signs = (category(letter)[0] == "M" for run in SIGNED.findall(text) for letter in run)
    return any(signs) and SYLLABLE not in load_rules(rules)(SYLLABLE)


@functools.cache
def warn_of_signs(rules: str) -> None:
    name = next(name for name, known in NAMES.items() if known == rules)
    say(
        f"warning: normaliser {name}: removes vowel signs (Hindi, Tamil, Thai ..), so that"
        " different words are equal and words fall apart; take whisper-basic-marks"
    )


def drop_brackets(text: str) -> str:
    """Return the text without brackets of the first two kinds; SIGN stands for unclosed ones."""
    if MARKUP[0] in text or MARKUP[1] in text:
        text = replace_unclosed(text, MARKUP, ">]")
        text = INSIDE.sub("", text)
    return replace_unclosed(text, "(", ")") if "(" in text else text


def replace_unclosed(text: str, openers: str, closers: str) -> str:
    """Return the text with SIGN for each opener after the last closer."""
    end = max(map(text.rfind, closers)) + 1
    return text[:end] + text[end:].translate(str.maketrans(dict.fromkeys(openers, SIGN)))


def name_version() -> str:
    import importlib.metadata  # 20 ms that every other verb would pay

    return f"{PACKAGE}-{importlib.metadata.version(PACKAGE)}"
