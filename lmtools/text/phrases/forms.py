"""Forms of a phrase beside the given one: plural, possessive, joined and parted words (English)."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from lmtools.text.phrases.tokens import split_text

SIBILANTS = ("s", "x", "z", "ch", "sh")
LEAST = 3  # letters of each part of a parted word
DASHES = "-‐‑"


def make_plural(word: str) -> str:
    """Return the regular English plural of a word."""
    if word.lower().endswith(SIBILANTS):
        return f"{word}es"
    if word[-1:] in "yY" and word[-2:-1].lower() not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}s"


def make_possessive(word: str) -> str:
    """Return a word with 's."""
    return f"{word}'s"


def inflect(text: str, plural: bool, possessive: bool) -> Iterator[str]:
    """Yield a text and those with its last word in the plural or with 's."""
    yield text
    if not text[-1:].isalpha():
        return
    head, blank, last = text.rpartition(" ")
    if plural:
        yield head + blank + make_plural(last)
    if possessive:
        yield head + blank + make_possessive(last)


def join_hyphens(text: str) -> Iterator[str]:
    """Yield a text whose hyphens join their words, where it has such."""
    joined = text.translate(dict.fromkeys(map(ord, DASHES)))
    if joined != text:
        yield joined


def compound(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield words with two neighbours joined, all joined, and one word parted into two."""
    for place, (left, right) in enumerate(pairwise(words)):
        yield (*words[:place], left + right, *words[place + 2 :])
    if len(words) > 2:
        yield ("".join(words),)
    for place, word in enumerate(words):
        for cut in range(LEAST, len(word) - LEAST + 1):
            yield (*words[:place], word[:cut], word[cut:], *words[place + 1 :])


def list_forms(text: str, spec) -> dict[tuple[str, ...], None]:
    """Return the words for matching of every form of a text that a PhraseSpec asks for; the text's
    own come first.
    """
    texts = [text, *(join_hyphens(text) if spec.hyphen else ())]
    forms = dict.fromkeys(tuple(split_text(form)) for form in texts)
    if spec.compound:
        forms |= dict.fromkeys(form for words in list(forms) for form in compound(words))
    forms.pop((), None)
    return forms
