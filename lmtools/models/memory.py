"""Memory of left-to-right models for a tree of prefixes, so that a prefix costs one step however
often it is made longer.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from lmtools.base.batching import tokens_kept
from lmtools.models.device import PRECISIONS, autocast
from lmtools.text.subword import BOS

# prefixes that go through a model at once: few enough that their ancestors fit into a CPU's cache
TOGETHER = 128


class Memory(Protocol):
    """The states of prefixes of a tree, a row each; row 0 is the beginning of sentence."""

    def grow(self, parents: np.ndarray, tokens: np.ndarray) -> Tensor:
        """Append a row for each of B >= 1 prefixes and return the last layer's states (B, D),
        float32.

        Prefix i is that of row `parents[i]` (B,) int64 and `tokens[i]` (B,) int64; a parent may be
        a row appended before it in the same call. The first prefix of all has the parent -1.
        """


class Rows:
    """A float32 matrix (rows, width) that grows in blocks that double."""

    def __init__(self, width: int, device: torch.device):
        self.count = 0
        self.values = torch.empty(256, width, device=device)

    def add(self, count: int) -> int:
        """Make room for `count` more rows; the number of the first."""
        first, self.count = self.count, self.count + count
        if self.count > len(self.values):
            count = max(self.count, 2 * len(self.values))
            longer = self.values.new_empty(count, self.values.shape[1])
            longer[:first] = self.values[:first]
            self.values = longer
        return first


def group_levels(parents: np.ndarray, first: int) -> Iterator[np.ndarray]:
    """Yield indices of the new rows from `first`, group by group, parents before children."""
    level: list[int] = []
    for parent in (parents - first).tolist():
        level.append(level[parent] + 1 if parent >= 0 else 0)
    order = np.argsort(level, kind="stable")
    begin = 0
    for end in np.bincount(level).cumsum().tolist():
        yield order[begin:end]
        begin = end


class TokenTree:
    """A tree of prefixes of tokens under a left-to-right trunk, in which equal prefixes are one
    node; node 0 is empty. A prefix that fills the positions forgets its oldest half. Memory a node:
    what the trunk remembers, 4 x width bytes of state, some 300 bytes.
    """

    start = 0

    def __init__(self, trunk, longest: int, precision: str = "float32"):
        self.trunk, self.longest, self.precision = trunk, longest, precision
        self.device, self.memory = trunk.lookup.weight.device, trunk.memory()
        # of each node; row -1: not computed
        self.tokens, self.parents, self.depths, self.rows = [BOS], [-1], [0], [-1]
        self.children: dict[tuple[int, int], int] = {}
        self.heads = Rows(trunk.width, self.device)

    def child(self, node: int, token: int) -> int:
        known = self.children.get((node, token))
        if known is None:
            full = self.depths[node] == self.longest
            known = self.add_child(self.shorten(node) if full else node, token)
            self.children[node, token] = known
        return known

    def add_child(self, node: int, token: int) -> int:
        child = self.children.setdefault((node, token), len(self.tokens))
        if child == len(self.tokens):
            self.tokens.append(token)
            self.parents.append(node)
            self.depths.append(self.depths[node] + 1)
            self.rows.append(-1)
        return child

    def shorten(self, node: int) -> int:
        """Return the node of the last tokens that a prefix that fills the positions keeps."""
        tokens = []
        for _ in range(tokens_kept(self.longest)):
            tokens.append(self.tokens[node])
            node = self.parents[node]
        node = self.start
        for token in reversed(tokens):
            node = self.add_child(node, token)
        return node

    def compute(self, nodes: list[int]) -> Tensor:
        """Return the rows (N,) of `heads` that the nodes have; what is not there is computed."""
        missing = self.list_missing(nodes)
        for begin in range(0, len(missing), TOGETHER):
            block = missing[begin : begin + TOGETHER]
            first = self.heads.add(len(block))
            for row, node in enumerate(block, first):
                self.rows[node] = row
            parents = np.array([self.rows[self.parents[node]] if node else -1 for node in block])
            tokens = np.array([self.tokens[node] for node in block])
            with autocast(self.device, self.precision):
                heads = self.trunk.head(self.memory.grow(parents, tokens))
            self.heads.values[first : self.heads.count] = heads.to(PRECISIONS[self.precision])
        return torch.tensor([self.rows[node] for node in nodes], device=self.device)

    def list_missing(self, nodes: list[int]) -> list[int]:
        """Return those of the nodes and their ancestors without a state, ancestors first."""
        missing: list[int] = []
        for node in dict.fromkeys(nodes):
            chain = []
            while node >= 0 and self.rows[node] == -1:
                self.rows[node] = -2  # listed
                chain.append(node)
                node = self.parents[node]
            missing += reversed(chain)
        return missing
