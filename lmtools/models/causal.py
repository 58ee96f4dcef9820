"""uniLM: a left-to-right Transformer."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from lmtools.models.memory import Rows, group_levels
from lmtools.models.transformer import Transformer, run_blocks

# prefixes whose attention is computed together: few enough that they share most of their ancestors
TOGETHER = 32


class Causal(Transformer):
    """State t has seen tokens 0..t and predicts token t+1; also with `position: none`."""

    title = "Transformer"
    needs_positions = False
    ragged = True

    def layer_states(self, tokens: Tensor, lengths: Tensor) -> Iterator[Tensor]:
        # padding is on the right, where no real position looks
        return run_blocks(self.blocks, self.embedding(tokens), causal=True)

    def see_rows(self, width):
        return {"causal": True}

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
        parts, queries = mask.shape[0], mask.shape[2]
        state = self.model.embedding.at(tokens, depths)
        for block, rows in zip(self.model.blocks, self.layers, strict=True):
            asking = block.enter(state)
            rows.values[first : rows.count] = block.key_value(asking)
            source = rows.values.index_select(0, seen.flatten()).view(*seen.shape, -1)
            query = F.pad(block.query(asking), (0, 0, 0, parts * queries - len(tokens)))
            context = block.attend(query.view(parts, queries, -1), source, mask)
            state = block.finish(state, context.flatten(0, 1)[: len(tokens)])
        return state.float()

    def place(self, first: int, parents: np.ndarray) -> np.ndarray:
        """Note the new rows' paths; return their depths (B,)."""
        count = first + len(parents)
        if count > len(self.depths):
            room = max(count, 2 * len(self.depths)) - len(self.depths)
            self.depths = np.pad(self.depths, (0, room))
            self.paths = np.pad(self.paths, ((0, room), (0, 0)))
        for level in group_levels(parents, first):
            rows, before = first + level, parents[level]
            if first + level[0] == 0:
                self.depths[0] = 0
                continue
            self.depths[rows] = self.depths[before] + 1
            self.paths[rows] = self.paths[before]
            self.paths[rows, self.depths[rows]] = rows
        return self.depths[first:count]

    def find_attended(self, first: int, depths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Find rows (P, U) that parts of prefixes attend to, and which each does (P, 1, B, U)."""
        count, size = first + len(depths), min(TOGETHER, len(depths))
        parts = -(-len(depths) // size)
        paths = np.zeros((parts * size, depths.max() + 1), dtype=np.int64)  # of nobody: the root's
        paths[: len(depths)] = self.paths[first:count, : paths.shape[1]]
        # numbers of pairs of part and row, and of those in use, part by part
        pairs = paths + np.arange(parts).repeat(size)[:, None] * count
        used = np.zeros(parts * count, dtype=bool)
        used[pairs] = True  # what follows a path is 0, the root, an ancestor of all
        counts = used.reshape(parts, count).sum(1)
        used = np.flatnonzero(used)
        column = np.empty(parts * count, dtype=np.int64)
        column[used] = np.arange(len(used)) - (counts.cumsum() - counts).repeat(counts)
        seen = np.zeros((parts, counts.max()), dtype=np.int64)
        seen[np.arange(counts.max()) < counts[:, None]] = used % count
        mask = np.zeros(parts * size * counts.max(), dtype=bool)
        mask[column[pairs] + np.arange(len(paths))[:, None] * counts.max()] = True
        return seen, mask.reshape(parts, 1, size, -1)
