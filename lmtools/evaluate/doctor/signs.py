"""Signs in a text that a program has cut it into tokens: Moses's escapes, spaces before
punctuation, subword marks.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

# How Moses writes what has a meaning in its files; the last three in older versions.
ESCAPES = {
    "apos": "'",
    "quot": '"',
    "amp": "&",
    "lt": "<",
    "gt": ">",
    "#91": "[",
    "#93": "]",
    "#124": "|",
}
ESCAPES |= {"bra": "[", "ket": "]", "bar": "|"}


@dataclass(frozen=True)
class Sign:
    """Sign of tokenisation: `label` names it, `pattern` matches it once a token, `rate` a word is
    how often clean text may show it, `undo` replaces a match.
    """

    label: str
    pattern: re.Pattern
    rate: float
    undo: Callable[[re.Match], str]


ESCAPED = rf"&({'|'.join(ESCAPES)});|(?<!\S)@-@(?!\S)"
SIGNS = {
    "pieces": Sign(
        "subword marks",
        re.compile(r"(?<=\S)@@(?: |$)|▁| ##(?=\w)"),
        rate=0.002,
        undo=lambda match: "",
    ),
    "escapes": Sign(
        "escapes of Moses's tokeniser",
        re.compile(ESCAPED),
        rate=0.0005,
        undo=lambda match: ESCAPES.get(match[1], "-"),
    ),
    # French puts a space before ; : ? ! as people write it
    "spaces": Sign(
        "spaces before commas and full stops",
        re.compile(r"(?<=\S)\s[,.](?!\S)"),
        rate=0.01,
        undo=lambda match: match[0],
    ),
}


def undo_signs(text: str) -> str:
    """Return `text` with pieces joined and escapes undone, so that their characters are not taken
    for the text's own.
    """
    for sign in SIGNS.values():
        text = sign.pattern.sub(sign.undo, text)
    return text
