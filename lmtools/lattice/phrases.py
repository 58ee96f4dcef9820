"""Phrases on lattices: a left-to-right scorer for `expand`, whose bonus of a word is what the
phrases found so far are worth more with it.

A path's bonuses add up to the value of its words as of lists (`PhraseAutomaton.value`): of phrases
that overlap the best choice, decided word by word. What the future needs of the past is the node of
the automaton, and how much the best choice has gained since each of the words that the node holds.
"""

from collections.abc import Sequence

import numpy as np

from lmtools.base.batching import Numbering
from lmtools.text.phrases import PhraseAutomaton
from lmtools.text.phrases.tokens import split_word

State = tuple[int, tuple[float, ...]]


class PhrasePrefixes:
    """The phrases of an automaton as `Prefixes` of lmtools.lattice.expand."""

    start = 0

    def __init__(self, automaton: PhraseAutomaton):
        self.automaton, self.states = automaton, Numbering((0, ()))

    def words(self, nodes: np.ndarray, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the bonuses (N,) of N words after prefixes, and the nodes (N,) of the longer
        prefixes.
        """
        bonuses, longer = np.zeros(len(nodes)), np.zeros(len(nodes), dtype=np.int64)
        for row, (node, word) in enumerate(zip(nodes.tolist(), words, strict=True)):
            state = self.states.things[node]
            for token in split_word(word):
                bonus, state = self.step(state, token)
                bonuses[row] += bonus
            longer[row] = self.states(state)
        return bonuses, longer

    def step(self, state: State, token: str) -> tuple[float, State]:
        """Return the bonus of a word after a state, and the next state."""
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
