"""uniLM: a left-to-right Transformer."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from lmtools.models.memory import Rows, group_levels
from lmtools.models.transformer import Transformer


class Causal(Transformer):
    """State t has seen tokens 0..t and predicts token t+1; how many they are tells it where it is,
    with `position: none` too.
    """

    title = "Transformer"
    needs_positions = False

    def layer_states(self, tokens: Tensor, lengths: Tensor) -> Iterator[Tensor]:
        state = self.embedding(tokens)
        yield state
        for block in self.blocks:  # padding is on the right, where no real position looks
            state = block(state, state, causal=True)
            yield state

    def memory(self):
        return KeyValues(self)


class KeyValues:
    """Keys and values of a tree of prefixes, one row a prefix and layer: 8 x layers x dim + 4 x
    positions bytes a prefix.

    New prefixes all go through together, whatever their lengths: each attends to those of the rows
    in use that are its ancestors. No prefix may be longer than the positions.
    """

    def __init__(self, model: Causal):
        self.model = model
        self.device = model.embedding.token.weight.device
        self.layers = [Rows(2 * model.config.dim, self.device) for _ in model.blocks]
        self.depths = np.empty(256, dtype=np.int64)
        # the rows from 0 to a prefix's own, then 0 again
        self.paths = np.zeros((256, model.config.positions), dtype=np.int32)

    def grow(self, parents: np.ndarray, tokens: np.ndarray) -> Tensor:
        """See lmtools.models.memory.Memory."""
        first = min([rows.add(len(tokens)) for rows in self.layers])  # the same in all
        depths = self.place(first, parents)
        seen, mask = self.find_attended(first, depths)
        tokens, depths, seen, mask = (
            torch.from_numpy(array).to(self.device) for array in (tokens, depths, seen, mask)
        )
        state = self.model.embedding.at(tokens, depths)[None]
        for block, rows in zip(self.model.blocks, self.layers, strict=True):
            asking = block.enter(state)
            rows.values[first : rows.count] = block.key_value(asking)[0]
            # (1, U, 2 D): one sentence of all ancestors, B queries
            source = rows.values.index_select(0, seen)[None]
            state = block.finish(state, block.attend(block.query(asking), source, mask))
        return state[0].float()

    def place(self, first: int, parents: np.ndarray) -> np.ndarray:
        """Note the new rows' paths; their depths (B,)."""
        count = first + len(parents)
        if count > len(self.depths):
            room = max(count, 2 * len(self.depths)) - len(self.depths)
            self.depths = np.pad(self.depths, (0, room))
            self.paths = np.pad(self.paths, ((0, room), (0, 0)))
        for some in group_levels(parents, first):
            rows, before = first + some, parents[some]
            if first + some[0] == 0:
                self.depths[0] = 0
                continue
            self.depths[rows] = self.depths[before] + 1
            self.paths[rows] = self.paths[before]
            self.paths[rows, self.depths[rows]] = rows
        return self.depths[first:count]

    def find_attended(self, first: int, depths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All rows (U,) that any of the new prefixes attends to, and which of them each one does:
        (1, 1, B, U) bool.
        """
        count = first + len(depths)
        paths = self.paths[first:count, : depths.max() + 1]
        used = np.zeros(count, dtype=bool)
        used[paths] = True  # what follows a path is 0, the root, an ancestor of all
        seen = np.flatnonzero(used)
        column = np.empty(count, dtype=np.int64)
        column[seen] = np.arange(len(seen))
        mask = np.zeros((len(depths), len(seen)), dtype=bool)
        mask[np.arange(len(depths))[:, None], column[paths]] = True
        return seen, mask[None, None]
