"""What unknown words cost: log p(<unk>) is that of all words that a vocabulary lacks together, and
one of them is less probable.
"""

import math
from collections.abc import Sequence

import numpy as np

from lmtools.errors import UserError
from lmtools.lattice.expand import PrefixLM
from lmtools.score.scorers import Scorer


class Penalised:
    """A scorer that gives each unknown token log p(<unk>) - `penalty`, in nats.

    With the logarithm of the number of words left out, they share the probability of <unk> evenly.
    """

    def __init__(self, scorer: Scorer, penalty: float):
        self.scorer, self.penalty, self.kind, self.rows = scorer, penalty, scorer.kind, scorer.rows
        self.signature = {**scorer.signature, "oov": repr(float(penalty))}
        self.normalise, self.prepare, self.cost, self.unknown = (
            scorer.normalise,
            scorer.prepare,
            scorer.cost,
            scorer.unknown,
        )

    def log_probs(self, sentences):
        scores = self.scorer.log_probs(sentences)
        return [
            values - np.append(self.penalty * self.unknown(s), 0.0)
            for s, values in zip(sentences, scores, strict=True)
        ]


def penalised(scorer: Scorer, penalty: float) -> Scorer:
    """The scorer under that penalty; itself where it is 0. UserError for one below 0."""
    if not 0 <= penalty < math.inf:
        raise UserError(
            f"--oov-penalty {penalty:g}: not a number from 0; give nats, such as the logarithm of"
            " the number of words left out"
        )
    return Penalised(scorer, penalty) if penalty else scorer


def plain(scorer: Scorer) -> Scorer:
    """The scorer without its penalty."""
    return scorer.scorer if isinstance(scorer, Penalised) else scorer


class PenalisedLM:
    """A left-to-right LM as lmtools.lattice.expand asks for it, with the penalty of `scorer`; `lm`
    is the LM without.
    """

    def __init__(self, lm: PrefixLM, scorer: Penalised):
        self.lm, self.scorer, self.signature = lm, scorer, scorer.signature
        self.known: dict[tuple[str, bool], float] = {}

    def cost(self, word: str, first: bool) -> float:
        """The penalty of a word that `lm` has seen, the first of a sentence or a later one."""
        if (word, first) not in self.known:
            self.known[word, first] = self.scorer.penalty * float(
                np.sum(self.scorer.unknown(self.lm.words.tokens(word, first)))
            )
        return self.known[word, first]

    def utterance(self) -> "PenalisedPrefixes":
        """The prefixes of one utterance."""
        return PenalisedPrefixes(self)


class PenalisedPrefixes:
    """The prefixes of one utterance, whose unknown words cost more."""

    def __init__(self, lm: PenalisedLM):
        self.lm, self.prefixes = lm, lm.lm.utterance()
        self.start = self.prefixes.start

    def words(self, nodes: np.ndarray, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """See lmtools.lattice.expand.Prefixes."""
        log_p, longer = self.prefixes.words(nodes, words)
        return (
            log_p
            - [
                self.lm.cost(word, node == self.start)
                for node, word in zip(nodes.tolist(), words, strict=True)
            ],
            longer,
        )

    def end(self, nodes: np.ndarray) -> np.ndarray:
        """See lmtools.lattice.expand.Prefixes."""
        return self.prefixes.end(nodes)
