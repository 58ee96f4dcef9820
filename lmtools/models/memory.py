"""Memory of left-to-right models for a tree of prefixes, so that a prefix costs one step however
often it is made longer.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import torch
from torch import Tensor


class Memory(Protocol):
    """The states of the prefixes of a tree, a row each; row 0 is the beginning of sentence. Models
    open one by `model.memory()`.
    """

    def grow(self, parents: np.ndarray, tokens: np.ndarray) -> Tensor:
        """Append a row for each of B >= 1 prefixes and return the last layer's states (B, D),
        float32.

        Prefix i is that of row `parents[i]` (B,) int64 and `tokens[i]` (B,) int64; a parent may be
        a row appended before it in the same call. The first prefix of all has the parent -1.
        """


class Rows:
    """A float32 matrix (rows, width) that grows, in blocks that double, so that appending costs
    little.
    """

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
    """Indices (.,) of the new rows first, first + 1 ..., group by group, each row in a later group
    than its parent.
    """
    level = np.zeros(len(parents), dtype=np.int64)
    for index in np.flatnonzero(parents >= first).tolist():
        level[index] = level[parents[index] - first] + 1
    for number in range(level.max() + 1):
        yield np.flatnonzero(level == number)
