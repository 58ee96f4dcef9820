"""Interface of scorers: natural-log probabilities of prepared texts, token by token."""

import copy
from collections.abc import Sequence

import numpy as np

from lmtools.arguments import check_number
from lmtools.score.trees import TreeBatch
from lmtools.specs import LMSpec


class Scorer:
    """A language model as all of lmtools.score asks for it; a class a kind of model.

    A sentence is whatever `prepare` made of a text: hashable, equal for equal scores. An unknown
    token costs `oov_penalty` nats beyond log p(<unk>), which is that of all words that a vocabulary
    lacks together, while one of them is less probable; with the logarithm of their number they
    share it evenly.
    """

    spec: LMSpec  # by which it was loaded
    kind: str  # perplexity or pseudo-perplexity: what exp(-log_prob / tokens) is
    signature: dict[str, str]
    rows: int | None = None  # model rows of a batch; None: it computes each sentence by itself
    subword = None  # a lmtools.subword.Subword, of models that have one
    open_words = False  # it predicts words without a closed vocabulary
    oov_penalty = 0.0
    notes: Sequence[tuple] = ()  # ModelNotes: what whoever meets unknown tokens should know
    pairs = False  # its texts are pairs of a source and what is scored given it

    def normalise(self, text: str) -> str:
        """Return the text as the model reads it."""
        return " ".join(text.split())

    def split(self, text: str) -> list[str]:
        """Return the words of a normalised text."""
        return text.split()

    def prepare(self, texts: Sequence[str]) -> list[tuple]:
        """Prepare texts, one sentence a text: normalised and segmented."""
        raise NotImplementedError

    def cost(self, sentence: tuple) -> int:
        """Return the number of rows that the model computes for the sentence; sentences of equal
        cost are computed in equal shapes.
        """
        raise NotImplementedError

    def unknown(self, sentence: tuple) -> np.ndarray:
        """Return which of the tokens that have a score are out of vocabulary, bool (tokens,)."""
        raise NotImplementedError

    def knows(self, word: str) -> bool:
        """Return whether no token of a word that has a score is out of vocabulary."""
        return not self.unknown(self.prepare([word])[0]).any()

    def token_names(self, sentence: tuple) -> list[str]:
        """Return a name of each token that has a score, without the end of sentence."""
        raise NotImplementedError

    def token_log_probs(self, sentences: Sequence[tuple]) -> list[np.ndarray]:
        """Return `log_probs` without the penalty."""
        raise NotImplementedError

    def log_probs(self, sentences: Sequence[tuple]) -> list[np.ndarray]:
        """log p of each token and the end of sentence, in nats, float64 (tokens + 1,) a
        sentence.
        """
        return self.penalised(sentences, self.token_log_probs(sentences))

    def plan_trees(self, sentences: Sequence[tuple]) -> list[TreeBatch]:
        """Return the numbers of those of many distinct sentences that are computed as trees of
        beginnings.
        """
        return []

    def tree_log_probs(self, sentences: Sequence[tuple]) -> list[np.ndarray]:
        """Return `log_probs` of a batch of `plan_trees`."""
        return self.penalised(sentences, self.from_tree(sentences))

    def from_tree(self, sentences: Sequence[tuple]) -> list[np.ndarray]:
        """Return `tree_log_probs` without the penalty."""
        raise NotImplementedError

    def penalised(
        self, sentences: Sequence[tuple], scores: Sequence[np.ndarray]
    ) -> Sequence[np.ndarray]:
        """Return the scores after the penalty of unknown tokens."""
        if not self.oov_penalty:
            return scores
        return [
            values - np.append(self.oov_penalty * self.unknown(sentence), 0.0)
            for sentence, values in zip(sentences, scores, strict=True)
        ]

    def with_oov_penalty(self, penalty: float) -> "Scorer":
        """Return the same model under that penalty, which its signature has; itself where it is 0.
        UserError for one below 0.
        """
        if not (penalty := check_number(penalty, "oov_penalty", 0)):
            return self
        scorer = copy.copy(self)
        scorer.oov_penalty = penalty
        scorer.signature = {**self.signature, "oov": repr(float(penalty))}
        return scorer
