"""Word sequences that an answer may be: those of a confusion network, as a finite automaton over
words, over a model's tokens, and as a grammar for servers.
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from lmtools.types import NO_WORD, ConfusionNetwork

Rest = tuple[int, tuple[int, ...]]  # the slot after a word, and its tokens that are still to come


@dataclass(frozen=True)
class Allowed:
    """One word of each slot, or none where NO_WORD is among the slot's."""

    slots: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, network: ConfusionNetwork) -> "Allowed":
        return cls(tuple(tuple(slot.words) for slot in network.slots))

    @property
    def most(self) -> int:
        """The number of ways through the slots, at least that of different texts."""
        return math.prod(map(len, self.slots))

    @cached_property
    def words(self) -> list[str]:
        """The words of all slots, each once."""
        return [w for w in dict.fromkeys(w for slot in self.slots for w in slot) if w != NO_WORD]

    def after(self, slot: int) -> Iterator[tuple[int, str | None]]:
        """Yield (next slot, word) of the words that may stand from a slot on; None is the end."""
        for place in range(slot, len(self.slots)):
            yield from ((place + 1, word) for word in self.slots[place] if word != NO_WORD)
            if NO_WORD not in self.slots[place]:
                return
        yield len(self.slots), None

    def holds(self, text: str) -> bool:
        """Return whether a text is one of the sequences."""
        here = {0}
        for word in [*text.split(), None]:
            here = {after for slot in here for after, found in self.after(slot) if found == word}
        return bool(here)

    def grammar(self) -> str:
        """Return the sequences as a grammar in llama.cpp's GBNF, a blank before each word."""
        parts = []
        for slot in self.slots:
            words = " | ".join(quote(f" {word}") for word in slot if word != NO_WORD)
            parts.append(f"({words})" + "?" * (NO_WORD in slot) if words else "")
        return f'root ::= {" ".join(filter(None, parts))} "\\n"'


def quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


class TokenPaths:
    """The sequences of `allowed` as tokens of a model: `tokens_of` a word, `end` after the last."""

    def __init__(self, allowed: Allowed, tokens_of: Callable[[str], Sequence[int]], end: int):
        self.allowed, self.end = allowed, end
        self.tokens = {word: tuple(tokens_of(word)) for word in allowed.words}
        self.start = frozenset(self.expand(0))

    def expand(self, slot: int) -> Iterator[Rest]:
        for after, word in self.allowed.after(slot):
            if word is None:
                yield after, (self.end,)
            elif self.tokens[word]:
                yield after, self.tokens[word]

    def options(self, here: frozenset[Rest]) -> dict[int, frozenset[Rest]]:
        """Return the tokens that may come next, and where each leads; after the end nowhere."""
        found: dict[int, set[Rest]] = {}
        for slot, (token, *rest) in sorted(here):
            there = found.setdefault(token, set())
            if rest:
                there.add((slot, tuple(rest)))
            elif token != self.end:
                there.update(self.expand(slot))
        return {token: frozenset(there) for token, there in found.items()}
