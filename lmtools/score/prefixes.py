"""Left-to-right language models over the word prefixes of an utterance, for the expansion of
lattices (lmtools.lattice.expand).
"""

from collections.abc import Sequence

import numpy as np

from lmtools.lattice.expand import PrefixLM
from lmtools.lattice.histories import MixtureLM, Numbering
from lmtools.ngram.model import LN10, kenlm
from lmtools.score.base import Scorer
from lmtools.score.mixture import MixtureScorer
from lmtools.score.neural_prefixes import NeuralPrefixLM
from lmtools.score.ngram import NgramScorer
from lmtools.score.words import WordPrefixes, WordTokens, check_wordwise


class NgramPrefixLM:
    """An n-gram model as lmtools.lattice.expand asks for it."""

    def __init__(self, scorer: NgramScorer):
        self.model, self.signature = scorer.model, scorer.signature
        self.words = WordTokens(scorer)

    def utterance(self) -> "NgramPrefixes":
        """Return the prefixes of one utterance."""
        return NgramPrefixes(self)


class NgramPrefixes(WordPrefixes):
    """The prefixes of one utterance under an n-gram model: a node is a KenLM state, the shortest
    history that decides the future.

    Scores equal those of the whole sentence in `NgramModel.query`; a word that normalises to
    nothing scores 0 and keeps its node.
    """

    def __init__(self, lm: NgramPrefixLM):
        super().__init__(lm.words)
        self.score = lm.model.step
        begin = kenlm.State()
        lm.model.kenlm.BeginSentenceWrite(begin)
        self.states = Numbering(
            begin
        )  # which no other prefix has: <s> in a text is an unknown word

    def grow(self, nodes: list[int], words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        rows = [self.word(node, word) for node, word in zip(nodes, words, strict=True)]
        scores, longer = zip(*rows, strict=True) if rows else ((), ())
        return np.array(scores, dtype=np.float64) * LN10, np.array(longer, dtype=np.int64)

    def word(self, node: int, word: str) -> tuple[float, int]:
        """log10 p(word | prefix) and the longer prefix."""
        total, state = 0.0, self.states.things[node]
        tokens = self.known.tokens(word, node == self.start)
        for token in tokens:
            before, state = state, kenlm.State()
            total += self.score(before, token, state)
        return total, self.states(state) if tokens else node

    def end(self, nodes: np.ndarray) -> np.ndarray:
        """See lmtools.lattice.expand.Prefixes."""
        after = kenlm.State()
        return (
            np.array(
                [self.score(self.states.things[node], "</s>", after) for node in nodes.tolist()],
                dtype=np.float64,
            )
            * LN10
        )


def load_prefix_lm(scorer: Scorer) -> PrefixLM:
    """Load the left-to-right model of `scorer`; UserError if it gives no word's probability from
    the words before alone, or its normaliser reads whole texts. Mixtures are mixed word by word.
    """
    if isinstance(scorer, MixtureScorer):
        pairs = zip(scorer.scorers, scorer.weights.tolist(), strict=True)
        kept = [(load_prefix_lm(part), weight) for part, weight in pairs if weight]
        return MixtureLM(*zip(*kept, strict=True))
    check_wordwise(scorer)
    return NgramPrefixLM(scorer) if isinstance(scorer, NgramScorer) else NeuralPrefixLM(scorer)
