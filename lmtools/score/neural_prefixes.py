"""Neural left-to-right language models on the words of lattices: a tree of prefixes whose states
are computed once.
"""

from collections.abc import Sequence

import numpy as np
import torch

from lmtools.device import PRECISIONS, autocast
from lmtools.errors import UserError
from lmtools.models.memory import Rows
from lmtools.score.neural import NeuralScorer
from lmtools.score.words import WordPrefixes, WordTokens
from lmtools.subword import BOS, EOS
from lmtools.windows import tokens_kept

# prefixes that go through the model at once: few enough that their ancestors fit into a CPU's cache
TOGETHER = 128


class NeuralPrefixLM:
    """A causal Transformer or LSTM as lmtools.lattice.expand asks for it; UserError where the model
    reads both sides of a word.
    """

    def __init__(self, scorer: NeuralScorer):
        if not (isinstance(scorer, NeuralScorer) and scorer.lm.objective.name == "causal"):
            kind = scorer.signature["lm"]
            raise UserError(
                f"{kind}: not a left-to-right model of lmtools train; score a path cover or N-best"
                " lists with it"
            )
        self.scorer, self.signature = scorer, scorer.signature
        self.words = WordTokens(scorer)
        self.trunk = scorer.lm.trunk
        self.output = scorer.output
        self.dtype = PRECISIONS[scorer.precision]

    def utterance(self) -> "NeuralPrefixes":
        """Return the prefixes of one utterance, empty; what they remember is freed with them."""
        return NeuralPrefixes(self)


class NeuralPrefixes(WordPrefixes):
    """The prefixes of one utterance: a tree of tokens, in which equal prefixes are one node.

    A node's state and log-normaliser are computed when something after it is first asked for, all
    that a call needs in one batch; no normaliser is where the scorer does not normalise. Memory:
    what the model remembers of a prefix (lmtools/models: KeyValues, Cells) and 4 x width of the
    output matrix bytes for each computed state, some 300 bytes for each node; 5.8 kB for 3 layers
    of 192. Scores equal `NeuralScorer.log_probs` summed over a word, as far as the sentence fits
    the positions. Beyond, a prefix that fills the positions forgets its oldest half: its node is
    that of its last `longest - max(1, longest // 2)` tokens, read from the beginning of sentence;
    `NeuralScorer` has windows of the same stride, but goes over to the next one earlier.
    """

    def __init__(self, lm: NeuralPrefixLM):
        super().__init__(lm.words)
        self.lm, self.memory = lm, lm.trunk.memory()
        self.longest = lm.scorer.lm.longest
        self.kept = tokens_kept(self.longest)
        # of each node; row -1: not computed
        self.tokens, self.parents, self.depths, self.rows = [BOS], [-1], [0], [-1]
        self.children: dict[tuple[int, int], int] = {}
        self.heads = Rows(lm.trunk.width, lm.scorer.device)
        self.normalisers = Rows(1, lm.scorer.device)

    def grow(self, nodes: list[int], words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        before, tokens, pairs, longer = [], [], [], []
        for pair, (node, word) in enumerate(zip(nodes, words, strict=True)):
            for token in self.known.tokens(word, node == self.start):
                before.append(node)
                tokens.append(token)
                pairs.append(pair)
                node = self.child(node, token)
            longer.append(node)
        log_p = np.bincount(
            np.array(pairs, dtype=np.int64), self.log_probs(before, tokens), len(words)
        )
        return log_p, np.array(longer, dtype=np.int64)

    def end(self, nodes: np.ndarray) -> np.ndarray:
        """See lmtools.lattice.expand.Prefixes."""
        return self.log_probs(nodes.tolist(), [EOS] * len(nodes))

    def child(self, node: int, token: int) -> int:
        """Return the node of a prefix that is one token longer."""
        known = self.children.get((node, token))
        if known is None:
            full = self.depths[node] == self.longest
            known = self.add_child(self.shorten(node) if full else node, token)
            self.children[node, token] = known
        return known

    def add_child(self, node: int, token: int) -> int:
        """Return the child of a node that has room for one, made where there is none."""
        child = self.children.setdefault((node, token), len(self.tokens))
        if child == len(self.tokens):
            self.tokens.append(token)
            self.parents.append(node)
            self.depths.append(self.depths[node] + 1)
            self.rows.append(-1)
        return child

    def shorten(self, node: int) -> int:
        """Return the node of the last `kept` tokens of a prefix that fills the positions."""
        tokens = []
        for _ in range(self.kept):
            tokens.append(self.tokens[node])
            node = self.parents[node]
        node = self.start
        for token in reversed(tokens):
            node = self.add_child(node, token)
        return node

    @torch.inference_mode()
    def log_probs(self, nodes: list[int], tokens: list[int]) -> np.ndarray:
        """log p(token | prefix) of N pairs, float64 (N,)."""
        if not nodes:
            return np.zeros(0)
        self.compute(self.missing(nodes))
        device = self.lm.scorer.device
        rows = torch.tensor([self.rows[node] for node in nodes], device=device)
        targets = torch.tensor(tokens, device=device)
        result = torch.empty(len(nodes), device=device)
        for some in torch.arange(len(nodes), device=device).split(1 << 14):
            result[some] = self.lm.output.unnormalised(
                self.heads.values[rows[some]].to(self.lm.dtype), targets[some]
            )
        if self.lm.scorer.normalised:
            result -= self.normalisers.values[rows, 0]
        if not result.isfinite().all():
            raise UserError(
                f"{self.lm.signature['lm']}: scores a word NaN or infinite; the model is damaged,"
                " train it again"
            )
        return result.double().cpu().numpy()

    def missing(self, nodes: list[int]) -> list[int]:
        """Return those of the nodes and their ancestors without a state, ancestors first."""
        found: list[int] = []
        for node in dict.fromkeys(nodes):
            chain = []
            while node >= 0 and self.rows[node] == -1:
                self.rows[node] = -2  # found
                chain.append(node)
                node = self.parents[node]
            found += reversed(chain)
        return found

    def compute(self, nodes: list[int]) -> None:
        """Give states to nodes, ancestors first."""
        for begin in range(0, len(nodes), TOGETHER):
            some = nodes[begin : begin + TOGETHER]
            first = self.heads.add(len(some))
            for row, node in enumerate(some, first):
                self.rows[node] = row
            parents = np.array([self.rows[self.parents[node]] if node else -1 for node in some])
            with autocast(self.lm.scorer.device, self.lm.scorer.precision):
                head = self.lm.trunk.head(
                    self.memory.grow(parents, np.array([self.tokens[node] for node in some]))
                )
            head = head.to(self.lm.dtype)
            self.heads.values[first : self.heads.count] = head
            if self.lm.scorer.normalised:
                self.normalisers.add(len(some))
                self.normalisers.values[first : self.heads.count, 0] = (
                    self.lm.output.log_normaliser(head)
                )
