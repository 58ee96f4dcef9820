"""Left-to-right language models over the word prefixes of an utterance, for lattices
(lmtools.lattice.expand) and for other programs' live decoders.
"""

from collections.abc import Sequence

import numpy as np

from lmtools.base.batching import Numbering
from lmtools.ngram.kenlm_files import kenlm
from lmtools.ngram.model import LN10


class WordPrefixes:
    """The prefixes of one utterance (lmtools.lattice.expand.Prefixes) under a scorer; a kind of
    model defines `grow` and `end`.
    """

    start = 0

    def __init__(self, scorer):
        self.scorer, self.known = scorer, scorer.words

    def grow(self, nodes: list[int], words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return log p(word | prefix) without the penalty, and the longer prefixes; a word without
        tokens has log p 0 and leads back to its node.
        """
        raise NotImplementedError

    def words(self, nodes: np.ndarray, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """See lmtools.lattice.expand.Prefixes."""
        self.known.learn(words)
        nodes = nodes.tolist()
        log_p, longer = self.grow(nodes, words)
        if self.scorer.oov_penalty:
            pairs = zip(nodes, words, strict=True)
            unknown = [self.known.count_unknown(word, node == self.start) for node, word in pairs]
            log_p = log_p - self.scorer.oov_penalty * np.array(unknown, dtype=np.float64)
        return log_p, longer


class NgramPrefixes(WordPrefixes):
    """The prefixes of one utterance under an n-gram model: a node is a KenLM state, the shortest
    history that decides the future.

    Scores equal those of the whole sentence in `NgramModel.query`; a word that normalises to
    nothing scores 0 and keeps its node.
    """

    def __init__(self, scorer):
        super().__init__(scorer)
        self.score = scorer.model.step
        begin = kenlm.State()
        scorer.model.kenlm.BeginSentenceWrite(begin)
        # no other prefix has this state: <s> in a text is an unknown word
        self.states = Numbering(begin)

    def grow(self, nodes: list[int], words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        rows = [self.grow_word(node, word) for node, word in zip(nodes, words, strict=True)]
        scores, longer = zip(*rows, strict=True) if rows else ((), ())
        return np.array(scores, dtype=np.float64) * LN10, np.array(longer, dtype=np.int64)

    def grow_word(self, node: int, word: str) -> tuple[float, int]:
        """Return log10 p(word | prefix) and the longer prefix."""
        total, state = 0.0, self.states.things[node]
        tokens = self.known.tokens(word, node == self.start)
        for token in tokens:
            before, state = state, kenlm.State()
            total += self.score(before, token, state)
        return total, self.states(state) if tokens else node

    def end(self, nodes: np.ndarray) -> np.ndarray:
        """See lmtools.lattice.expand.Prefixes."""
        after, states = kenlm.State(), [self.states.things[node] for node in nodes.tolist()]
        scores = [self.score(state, "</s>", after) for state in states]
        return np.array(scores, dtype=np.float64) * LN10
