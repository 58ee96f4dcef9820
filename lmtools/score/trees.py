"""Sentences as a tree of their beginnings, so that a left-to-right model computes what the
hypotheses of a list share only once.
"""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

# of the tokens of some sentences, as many beginnings at most differ where a tree of them pays
SHARED = 0.8


class SentenceTree(NamedTuple):
    """The distinct beginnings of sentences; node 0 is empty, parents come first."""

    tokens: np.ndarray  # int64 (N,): the last token of each beginning; of node 0 the boundary
    parents: np.ndarray  # int64 (N,): the beginning without it; of node 0 itself
    paths: list[list[int]]  # of each sentence, its nodes from 0 on

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]], begin: int) -> "SentenceTree":
        """Return the tree of token ids; `begin` stands before each sentence."""
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

    def predictions(self, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Return each prediction once: nodes and next tokens, (N - 1 + sentences,) both."""
        last = np.array([path[-1] for path in self.paths], dtype=np.int64)
        ends = np.full(len(last), end, dtype=np.int64)
        return np.append(self.parents[1:], last), np.append(self.tokens[1:], ends)

    def split_values(self, values: np.ndarray) -> list[np.ndarray]:
        """Split values, one a prediction, into those of each sentence (tokens + 1,), end last."""
        places = [
            place
            for end, path in enumerate(self.paths, len(self.tokens))
            for place in (*path[1:], end)
        ]
        values = values[np.array(places, dtype=np.int64) - 1]
        bounds = itertools.accumulate(map(len, self.paths), initial=0)
        return [values[slice(*rows)] for rows in itertools.pairwise(bounds)]

    def ancestors(self) -> np.ndarray:
        """Return which nodes (column) begin which (row), itself included: bool (N, N)."""
        within = np.eye(len(self.tokens), dtype=bool)
        for node in range(1, len(within)):
            within[node] |= within[self.parents[node]]
        return within


def cut_parts(sizes: Sequence[int], tokens: int) -> list[slice]:
    """Return consecutive sentences in parts of at most so many tokens, or one."""
    parts, begin, total = [], 0, 0
    for place, size in enumerate(sizes):
        total += size
        if total > tokens and place > begin:
            parts.append(slice(begin, place))
            begin, total = place, size
    return [*parts, slice(begin, len(sizes))] if sizes else []


def tree_sizes(sentences: Sequence[Sequence[int]]) -> list[int]:
    """Return the most nodes that each sentence may add to a tree: its tokens and end."""
    return [len(sentence) + 1 for sentence in sentences]


class TreeBatch(list):
    """Sentences, or numbers, that go through together: one tree, or pairs of one target."""


def plan_trees(sentences: Sequence[Sequence[int]], tokens: int, longest: int) -> list[TreeBatch]:
    """Plan trees of distinct `sentences`, in parts of at most so many tokens; what shares little,
    or has more than `longest` tokens, stays out.
    """
    short = [i for i, sentence in enumerate(sentences) if len(sentence) <= longest]
    plan = []
    for part in cut_parts(tree_sizes([sentences[i] for i in short]), tokens):
        part_sentences = [sentences[i] for i in short[part]]
        beginnings = len(SentenceTree.of(part_sentences, 0).tokens)
        if beginnings <= SHARED * sum(tree_sizes(part_sentences)):
            plan.append(TreeBatch(short[part]))
    return plan


def plan_pairs(
    pairs: Sequence[tuple[Sequence, Sequence]], tokens: int, longest: int
) -> list[TreeBatch]:
    """Plan batches: numbers of those of the distinct `pairs` of source and target that go through
    together: two or more targets of one source, or, where there are fewer different targets than
    sources, two or more sources of one target; in parts of at most so many tokens, of targets of at
    most `longest` each.

    They are sorted, so that neighbours share most or are as long, and so that the order of the
    pairs changes nothing.
    """
    groups: tuple[dict, dict] = {}, {}  # by source, by target
    for number, (source, target) in enumerate(pairs):
        if len(target) <= longest:
            groups[0].setdefault(tuple(source), []).append(number)
            groups[1].setdefault(tuple(target), []).append(number)
    plan = []
    if len(groups[0]) <= len(groups[1]):
        for group in groups[0].values():
            group.sort(key=lambda number: pairs[number][1])
            plan += cut_group(group, tree_sizes([pairs[number][1] for number in group]), tokens)
        return plan
    for target, group in groups[1].items():
        group.sort(key=lambda number: (len(pairs[number][0]), pairs[number][0]))
        sizes = tree_sizes([pairs[number][0] for number in group])
        plan += cut_group(group, [size + len(target) + 1 for size in sizes], tokens)
    return plan


def cut_group(group: list[int], sizes: Sequence[int], tokens: int) -> list[TreeBatch]:
    """Cut numbers of sentences into parts of at most so many tokens, without those left alone."""
    parts = cut_parts(sizes, tokens)
    return [TreeBatch(group[part]) for part in parts if part.stop - part.start > 1]


def score_nodes(
    tree: SentenceTree, heads: "Tensor", output, end: int, normalised: bool = True
) -> list[np.ndarray]:
    """Return scores (tokens + 1,) of a tree's sentences by its nodes' states (N, width)."""
    import torch  # which n-grams do without

    before, targets = (torch.from_numpy(array).to(heads.device) for array in tree.predictions(end))
    scores = output.unnormalised(heads[before], targets)
    if normalised:
        scores = scores - output.log_normaliser(heads)[before]
    return tree.split_values(scores.double().cpu().numpy())
