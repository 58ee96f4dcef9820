"""Phrases in sequences of words: an automaton that finds all at once, and the choice among those
that overlap.

The automaton is that of Aho and Corasick (1975, Efficient String Matching), over words: time and
memory are linear in the phrases once, and in the text and what is found, whatever the number of
phrases. Of what overlaps, the occurrences of greatest value in sum count, of equals the fewest, so
that `new york` inside `new york times` is not counted twice.
"""

import functools
import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from lmtools.base.batching import Numbering
from lmtools.text.normaliser import APOSTROPHES, STRAIGHTEN, change_case
from lmtools.text.scripts import split_letters, split_units

KEPT = "#&@%*\\"  # punctuation of Unicode that is part of terms
# Letters that hardly a language but the Turkic ones has: its text has their dotted and dotless i
TURKIC = re.compile("[ıİğĞşŞ]")


class Blanks(dict):
    """A table, filled as characters turn up, of punctuation to blanks."""

    def __missing__(self, point: int) -> str:
        letter = chr(point)
        blank = unicodedata.category(letter)[0] == "P" and letter not in KEPT
        self[point] = " " if blank and letter not in APOSTROPHES else letter
        return self[point]


BLANKS = Blanks()


@functools.lru_cache(maxsize=1 << 16)
def split_word(word: str, turkic: bool = False) -> tuple[str, ...]:
    """Return the words for matching in a word: none of punctuation, several if hyphenated."""
    if word.isascii() and word.isalpha() and not turkic:
        return (word.lower(),)
    text = unicodedata.normalize("NFKC", word).translate(STRAIGHTEN).translate(BLANKS)
    if turkic:
        text = change_case(text, "lower", "tr")
    if not text.isascii():
        text = fold(split_letters(text))
    return tuple(part for part in text.lower().split() if part.strip("'"))


def fold(text: str) -> str:
    """Return a text without case, as Unicode folds it; the dot of a Turkish `İ` is that of `i`."""
    return unicodedata.normalize("NFKC", text.casefold().replace("i\u0307", "i"))


def split_text(text: str) -> list[str]:
    return [token for token, _ in place_tokens(text.split())]


def place_tokens(words: Sequence[str]) -> list[tuple[str, int]]:
    """Return the words for matching in the words of a text, each with its word's place."""
    turkic = any(map(TURKIC.search, words))
    return [(token, n) for n, word in enumerate(words) for token in split_word(word, turkic)]


def cut_units(text: str) -> tuple[list[str], list[str]]:
    """Return the units of a text (`split_units`) and the blank, if any, before each."""
    parts = [split_units(word) for word in text.split()]
    before = [" " * (k == 0) for units in parts for k in range(len(units))]
    return [unit for units in parts for unit in units], before


def join_units(units: Sequence[str], before: Sequence[str]) -> str:
    """Return the text of units, but empty ones, and of what stands before each."""
    return "".join(b + unit for b, unit in zip(before, units, strict=True) if unit).strip()


def is_border(letter: str) -> bool:
    """Return whether a letter at the border of a word is punctuation, no part of the word."""
    return BLANKS[ord(letter)] == " " or letter in APOSTROPHES


GRAIN = 1024  # values are multiples of 1 / GRAIN, so that their sums are exact in any order


class Occurrence(NamedTuple):
    """Words `start` to `end` (not included) that are a form of the phrase that is `written` so."""

    start: int
    end: int
    written: str
    value: float


class PhraseForm(NamedTuple):
    """A form in the automaton: how many words, its value, how its phrase is written."""

    length: int
    value: float
    written: str


class PhraseAutomaton:
    """Forms of phrases in one automaton; nodes are numbers, 0 is the start.

    `forms` are (words, value of the form, how its phrase is written); of equal words the greatest
    value stays, of equals the first. Apostrophes at the borders of a text's word (`york'`, where a
    quotation ends) count only where this word, with them, is a form (`it'`).
    """

    def __init__(self, forms: Iterable[tuple[Sequence[str], float, str]]):
        self.next: list[dict[str, int]] = [{}]
        self.quoted: set[str] = set()  # forms of one word with apostrophes at its borders
        self.depth = [0]
        own: list[PhraseForm | None] = [None]
        for words, value, written in forms:
            node = self.enter(words, own)
            value = round(value * GRAIN) / GRAIN
            known = own[node]
            if words and (known is None or value > known.value):
                own[node] = PhraseForm(len(words), value, written)
        self.own, self.fail, self.shorter = own, [0] * len(own), [-1] * len(own)
        self.link()

    def enter(self, words: Sequence[str], own: list) -> int:
        node = 0
        for word in words:
            if len(words) > 1:
                word = word.strip("'")
            elif "'" in (word[0], word[-1]):
                self.quoted.add(word)
            after = self.next[node].get(word)
            if after is None:
                after = self.next[node][word] = len(self.next)
                self.next.append({})
                self.depth.append(self.depth[node] + 1)
                own.append(None)
            node = after
        return node

    def link(self) -> None:
        """Find each node's longest proper suffix, and the longest that is a form (-1: none)."""
        queue = deque(self.next[0].values())
        while queue:
            node = queue.popleft()
            suffix = self.fail[node]
            self.shorter[node] = suffix if self.own[suffix] else self.shorter[suffix]
            for word, after in self.next[node].items():
                self.fail[after] = self.step(suffix, word)
                queue.append(after)

    def step(self, node: int, word: str) -> int:
        if "'" in word and word not in self.quoted:
            word = word.strip("'")
        while True:
            after = self.next[node].get(word)
            if after is not None:
                return after
            if node == 0:
                return 0
            node = self.fail[node]

    def ends(self, node: int) -> Iterable[PhraseForm]:
        while node > 0:
            form = self.own[node]
            if form:
                yield form
            node = self.shorter[node]

    def find_all(self, words: Sequence[str]) -> list[Occurrence]:
        """Find every occurrence, in the order of their ends, the longest of an end first."""
        node, found = 0, []
        for end, word in enumerate(words, 1):
            node = self.step(node, word)
            found += [Occurrence(end - f.length, end, f.written, f.value) for f in self.ends(node)]
        return found

    def choose(self, words: Sequence[str]) -> list[Occurrence]:
        """Choose occurrences of greatest summed value without overlap, fewest of equals."""
        totals: list[tuple[float, int]] = [(0.0, 0)]
        back: list[Occurrence | None] = [None]
        found, place = self.find_all(words), 0
        for end in range(1, len(words) + 1):
            best, last = totals[end - 1], None
            while place < len(found) and found[place].end == end:
                value, count = totals[found[place].start]
                total = (value + found[place].value, count - 1)
                if total > best:
                    best, last = total, found[place]
                place += 1
            totals.append(best)
            back.append(last)
        chosen, end = [], len(words)
        while end > 0:
            occurrence = back[end]
            if occurrence:
                chosen.append(occurrence)
            end = occurrence.start if occurrence else end - 1
        return chosen[::-1]

    def value(self, words: Sequence[str]) -> float:
        if self.next[0].keys().isdisjoint(words):
            text = f" {' '.join(words)} "
            if " '" not in text and "' " not in text:
                return 0.0
        best, node = [0.0], 0
        for word in words:
            node = self.step(node, word)
            here = best[-1]
            for form in self.ends(node):
                here = max(here, best[-form.length] + form.value)
            best.append(here)
        return best[-1]


def spell(text: str, automaton: PhraseAutomaton) -> str:
    """Return a text with every phrase of whole words as the glossary writes it; punctuation before
    and after a phrase stays, and white space becomes single blanks where something changes.
    """
    words, before = cut_units(text)
    tokens = place_tokens(words)
    changed = list(words)
    for found in automaton.choose([token for token, _ in tokens]):
        first, last = tokens[found.start][1], tokens[found.end - 1][1]
        beside = [*tokens[found.start - 1 : found.start], *tokens[found.end : found.end + 1]]
        if {place for _, place in beside}.isdisjoint((first, last)):
            begin, after = find_borders(words[first], words[last])
            if found.written[0] in APOSTROPHES:
                begin = begin.rstrip(APOSTROPHES)
            if found.written[-1] in APOSTROPHES:
                after = after.lstrip(APOSTROPHES)
            changed[first] = begin + found.written + after
            changed[first + 1 : last + 1] = [""] * (last - first)
    return text if changed == words else join_units(changed, before)


def find_borders(first: str, last: str) -> tuple[str, str]:
    """Return the punctuation that the first word begins with, and that the last one ends in."""
    begin, end = 0, len(last)
    while begin < len(first) and is_border(first[begin]):
        begin += 1
    while end > 0 and is_border(last[end - 1]):
        end -= 1
    return first[:begin], last[end:]


State = tuple[int, tuple[float, ...]]


class PhrasePrefixes:
    """The phrases of an automaton as `Prefixes` of lmtools.lattice.expand."""

    start = 0

    def __init__(self, automaton: PhraseAutomaton):
        self.automaton, self.states = automaton, Numbering((0, ()))

    def words(self, nodes: np.ndarray, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the bonuses (N,) of words after prefixes, and nodes of the longer prefixes."""
        bonuses, longer = np.zeros(len(nodes)), np.zeros(len(nodes), dtype=np.int64)
        for row, (node, word) in enumerate(zip(nodes.tolist(), words, strict=True)):
            state = self.states.things[node]
            for token in split_word(word):
                bonus, state = self.step(state, token)
                bonuses[row] += bonus
            longer[row] = self.states(state)
        return bonuses, longer

    def step(self, state: State, token: str) -> tuple[float, State]:
        node, gains = state
        node = self.automaton.step(node, token)
        since = (0.0, *gains)  # gained since 0, 1, .. words ago
        bonus = 0.0
        for form in self.automaton.ends(node):
            bonus = max(bonus, form.value - since[form.length - 1])
        return bonus, (node, tuple(bonus + gain for gain in since[: self.automaton.depth[node]]))

    def end(self, nodes: np.ndarray) -> np.ndarray:
        """Return 0 (N,): the end of a sentence adds nothing."""
        return np.zeros(len(nodes))
