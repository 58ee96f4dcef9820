"""Sentences as a tree of their beginnings, so that a left-to-right model computes what the
hypotheses of a list share only once.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class SentenceTree(NamedTuple):
    """The distinct beginnings of some sentences; node 0 is the empty one, a parent stands before
    its children.
    """

    tokens: np.ndarray  # int64 (N,): the last token of each beginning; of node 0 the boundary
    parents: np.ndarray  # int64 (N,): the beginning without it; of node 0 itself
    paths: list[list[int]]  # of each sentence, its nodes from 0 on

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]], begin: int) -> "SentenceTree":
        """The tree of token ids; `begin` stands before each sentence."""
        known: dict[tuple[int, int], int] = {}
        tokens, parents, paths = [begin], [0], []
        for sentence in sentences:
            path = [0]
            for token in sentence:
                node = known.setdefault((path[-1], token), len(tokens))
                if node == len(tokens):
                    tokens.append(token)
                    parents.append(path[-1])
                path.append(node)
            paths.append(path)
        return cls(np.array(tokens), np.array(parents), paths)

    def ancestors(self) -> np.ndarray:
        """Which nodes (column) are beginnings of which (row), itself included: bool (N, N)."""
        within = np.eye(len(self.tokens), dtype=bool)
        for node in range(1, len(within)):
            within[node] |= within[self.parents[node]]
        return within


def cut_trees(sentences: Sequence[Sequence[int]], tokens: int) -> list[slice]:
    """`sentences` in consecutive parts of at most so many tokens, ends included; one that has more
    is a part of its own.
    """
    parts, begin, total = [], 0, 0
    for place, sentence in enumerate(sentences):
        total += len(sentence) + 1
        if total > tokens and place > begin:
            parts.append(slice(begin, place))
            begin, total = place, len(sentence) + 1
    return [*parts, slice(begin, len(sentences))] if sentences else []
