"""Texts with phrases as a glossary writes them."""

from lmtools.text.normaliser import APOSTROPHES
from lmtools.text.phrases.matching import PhraseAutomaton
from lmtools.text.phrases.tokens import is_border, split_word


def spell(text: str, automaton: PhraseAutomaton) -> str:
    """Return a text with every phrase of whole words as the glossary writes it; punctuation before
    and after a phrase stays, and white space becomes single blanks where something changes.
    """
    words = text.split()
    tokens = [(token, place) for place, word in enumerate(words) for token in split_word(word)]
    changed = list(words)
    for found in automaton.choose([token for token, _ in tokens]):
        first, last = tokens[found.start][1], tokens[found.end - 1][1]
        beside = [*tokens[found.start - 1 : found.start], *tokens[found.end : found.end + 1]]
        if {place for _, place in beside}.isdisjoint((first, last)):
            before, after = find_borders(words[first], words[last])
            if found.written[0] in APOSTROPHES:
                before = before.rstrip(APOSTROPHES)
            if found.written[-1] in APOSTROPHES:
                after = after.lstrip(APOSTROPHES)
            changed[first] = before + found.written + after
            changed[first + 1 : last + 1] = [""] * (last - first)
    return text if changed == words else " ".join(filter(None, changed))


def find_borders(first: str, last: str) -> tuple[str, str]:
    """Return the punctuation that the first word begins with, and that the last one ends in."""
    begin, end = 0, len(last)
    while begin < len(first) and is_border(first[begin]):
        begin += 1
    while end > 0 and is_border(last[end - 1]):
        end -= 1
    return first[:begin], last[end:]
