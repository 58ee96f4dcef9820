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
    """`about` names it, `found` matches it once a token, `rate` a word is how often clean text may
    show it, `undo` replaces a match.
    """

    about: str
    found: re.Pattern
    rate: float
    undo: Callable[[re.Match], str]


SIGNS = {
    "pieces": Sign("subword marks", re.compile(r"(?<=\S)@@(?: |$)|▁| ##(?=\w)"), 0.002,
                   lambda match: ""),
    "escapes": Sign("escapes of Moses's tokeniser",
    re.compile(rf"&({'|'.join(ESCAPES)});|(?<!\S)@-@(?!\S)"), 0.0005,
                    lambda match: ESCAPES.get(match[1], "-")),
    # French puts a space before ; : ? ! as people write it
    "spaces": Sign("spaces before commas and full stops", re.compile(r"(?<=\S)\s[,.](?!\S)"), 0.01,
    lambda match: match[0]),
}  # fmt: skip


def undo_signs(text: str) -> str:
    """Return `text` with pieces joined and escapes undone, so that their characters are not taken
    for the text's own.
    """
    for sign in SIGNS.values():
        text = sign.found.sub(sign.undo, text)
    return text
