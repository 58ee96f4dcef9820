"""Neural left-to-right models over the word prefixes of an utterance."""

from collections.abc import Sequence

import numpy as np
import torch

from lmtools.base.errors import UserError
from lmtools.models.device import PRECISIONS
from lmtools.models.memory import TOGETHER, Rows, TokenTree
from lmtools.score.base import WordPrefixes
from lmtools.text.subword import EOS

SCORED = 1 << 14  # predictions that are scored at once


class NeuralPrefixes(WordPrefixes):
    """The prefixes of one utterance under a neural left-to-right model: a tree of tokens.

    A node's state and log-normaliser are computed when something after it is first asked for, all
    that a call needs in one batch; there is no normaliser where the scorer does not normalise.
    Memory: that of the tree, and 4 bytes for each computed state. Scores equal
    `NeuralScorer.log_probs` summed over a word, as far as the sentence fits the positions; beyond,
    prefixes forget as TokenTree says: `NeuralScorer` has windows of the same stride, but goes over
    to the next one earlier.
    """

    def __init__(self, scorer):
        super().__init__(scorer)
        self.tree = TokenTree(scorer.lm.trunk, scorer.lm.longest, scorer.precision)
        self.normalisers = Rows(1, scorer.device)

    def grow(self, nodes: list[int], words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        before, tokens, pairs, longer = [], [], [], []
        for pair, (node, word) in enumerate(zip(nodes, words, strict=True)):
            for token in self.known.tokens(word, node == self.start):
                before.append(node)
                tokens.append(token)
                pairs.append(pair)
                node = self.tree.child(node, token)
            longer.append(node)
        log_p = np.bincount(
            np.array(pairs, dtype=np.int64), self.log_probs(before, tokens), len(words)
        )
        return log_p, np.array(longer, dtype=np.int64)

    def end(self, nodes: np.ndarray) -> np.ndarray:
        """See lmtools.lattice.expand.Prefixes."""
        return self.log_probs(nodes.tolist(), [EOS] * len(nodes))

    @torch.inference_mode()
    def log_probs(self, nodes: list[int], tokens: list[int]) -> np.ndarray:
        """Return log p(token | prefix) of N pairs, float64 (N,)."""
        if not nodes:
            return np.zeros(0)
        output, dtype = self.scorer.output, PRECISIONS[self.scorer.precision]
        rows = self.tree.compute(nodes)
        heads, targets = self.tree.heads.values, torch.tensor(tokens, device=rows.device)
        parts = zip(rows.split(SCORED), targets.split(SCORED), strict=True)
        result = torch.cat(
            [output.unnormalised(heads[row].to(dtype), target) for row, target in parts]
        )
        if self.scorer.normalised:
            result = result - self.log_normalisers()[rows]
        if not result.isfinite().all():
            raise UserError(
                f"{self.scorer.signature['lm']}: scores a word NaN or infinite; the model is"
                " damaged, train it again"
            )
        return result.double().cpu().numpy()

    def log_normalisers(self) -> torch.Tensor:
        """Return the log-normalisers of all computed states of the tree (rows,)."""
        heads, known = self.tree.heads, self.normalisers.count
        for block in heads.values[known : heads.count].split(TOGETHER):
            first = self.normalisers.add(len(block))
            values = self.scorer.output.log_normaliser(block.to(PRECISIONS[self.scorer.precision]))
            self.normalisers.values[first : self.normalisers.count, 0] = values
        return self.normalisers.values[:, 0]
