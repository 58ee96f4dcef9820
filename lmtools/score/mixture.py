"""Linear interpolation of language models: sum_i w_i p_i, token by token where they predict the
same tokens, else sentence by sentence.
"""

from collections.abc import Sequence

import numpy as np

from lmtools.base.batching import find_distinct
from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.lattice.histories import MixtureLM, name_mixture
from lmtools.ngram.interpolation import complete_weights
from lmtools.score.base import Scorer
from lmtools.score.texts import score_all


class MixtureScorer(Scorer):
    """The mixture of P models that predict from the left alone, with `weights` (P,).

    Models of one vocabulary, and n-grams of words, are mixed `by_token`: each token has the
    weighted mean of their probabilities. Others are mixed by sentence: a sentence has the weighted
    mean of their probabilities of it, the one value that `token_log_probs` gives; its tokens are
    those of the first model. What a model does not know and another knows has probability 0 under
    the first, so that unlike vocabularies are one, and <unk> is what all lack (as in `lmtools ngram
    mix`). A sentence is what each model prepares of a text, in their order. Each model computes in
    batches of its own, as it does alone. UserError for a model of another kind.
    """

    kind = "perplexity"

    def __init__(
        self, scorers: Sequence[Scorer], weights: Sequence[float], lms: Sequence[str], spec: LMSpec
    ):
        for scorer, lm in zip(scorers, lms, strict=True):
            if scorer.kind != self.kind:
                raise UserError(
                    f"{lm}: gives a {scorer.kind}, which cannot be mixed; give models that predict"
                    " from the left alone"
                )
        self.spec, self.scorers, self.lms = spec, list(scorers), list(lms)
        self.weights = complete_weights(weights, self.lms)
        self.by_token = predict_same_tokens(scorers)
        self.subword = scorers[0].subword if self.by_token else None
        self.notes = [note for scorer in scorers for note in scorer.notes]
        self.signature = self.describe()

    def describe(self) -> dict[str, str]:
        """Return the signature: hashes with weights, what is mixed, and what models agree on."""
        signatures = [scorer.signature for scorer in self.scorers]
        names = dict.fromkeys(name for signature in signatures for name in signature)
        identity = {
            "lm": "mixture",
            "model": name_mixture(self.scorers, self.weights.tolist()),
            "mixed": "by token" if self.by_token else "by sentence",
            "unknown": "to all",
        }
        for name in names:
            values = [signature.get(name) for signature in signatures]
            given = {value for value in values if value is not None}
            joined = given.pop() if len(given) == 1 else "+".join(value or "-" for value in values)
            identity.setdefault(name, joined)
        return identity

    def normalise(self, text):
        return self.scorers[0].normalise(text)

    def split(self, text):
        return self.scorers[0].split(text)

    def prepare(self, texts):
        sentences = list(zip(*(scorer.prepare(texts) for scorer in self.scorers), strict=True))
        for sentence in sentences if self.by_token else ():
            lengths = self.count_tokens(sentence)
            if other := next((i for i, size in enumerate(lengths) if size != lengths[0]), 0):
                raise UserError(
                    f"{self.lms[other]}: cuts the text otherwise than {self.lms[0]}; use one"
                    " vocabulary"
                )
        return sentences

    def count_tokens(self, sentence: tuple) -> list[int]:
        """Return the number of tokens that each model predicts, without the end."""
        pairs = zip(self.scorers, sentence, strict=True)
        return [len(scorer.unknown(prepared)) for scorer, prepared in pairs]

    def cost(self, sentence):
        pairs = zip(self.scorers, sentence, strict=True)
        return sum(scorer.cost(prepared) for scorer, prepared in pairs)

    def unknown(self, sentence):
        rows = self.list_unknown(sentence)
        return np.all(rows, axis=0) if self.by_token else rows[0]

    def list_unknown(self, sentence: tuple) -> list[np.ndarray]:
        """Return which tokens are unknown to each model, (tokens,) each."""
        pairs = zip(self.scorers, sentence, strict=True)
        return [scorer.unknown(prepared) for scorer, prepared in pairs]

    def token_names(self, sentence):
        if self.by_token:
            return self.scorers[0].token_names(sentence[0])
        raise UserError(
            f"{' + '.join(self.lms)}: mixed by sentence, so that no token has a probability; give"
            " models of one vocabulary"
        )

    def token_log_probs(self, sentences):
        pairs = zip(self.joint_log_probs(sentences), sentences, strict=True)
        return [self.mix(logs, sentence) for logs, sentence in pairs]

    def joint_log_probs(self, sentences: Sequence[tuple]) -> list[np.ndarray]:
        """Return log p (P, tokens + 1) of tokens and end by model, or (P, 1) of sentences."""
        rows, columns = [], zip(*sentences, strict=True)
        for scorer, prepared in zip(self.scorers, columns, strict=bool(sentences)):
            distinct, which = find_distinct(prepared)
            scores: dict[int, np.ndarray] = {}
            for indices, values in score_all(scorer, distinct):
                scores |= zip(indices, values, strict=True)
            logs = [scores[i] for i in which.tolist()]
            rows.append(logs if self.by_token else [log.sum(keepdims=True) for log in logs])
        return [np.stack(logs) for logs in zip(*rows, strict=True)]

    def mix(self, logs: np.ndarray, sentence: tuple) -> np.ndarray:
        """Return the logarithm (N,) of the weighted mean of what has logarithms `logs` (P, N)."""
        with np.errstate(divide="ignore"):
            return np.logaddexp.reduce(
                np.log(self.weights)[:, None] + self.leave_out(logs, sentence)
            )

    def leave_out(self, logs: np.ndarray, sentence: tuple) -> np.ndarray:
        """Return `logs` (P, N), -inf where a model lacks what another one of some weight knows."""
        unknown = self.list_unknown(sentence)
        if self.by_token:
            lacking = np.array([[*row, False] for row in unknown])
        else:
            lacking = np.array([[row.any()] for row in unknown])
        return np.where(lacking & ~lacking[self.weights > 0].all(0), -np.inf, logs)

    @property
    def by_word(self) -> MixtureLM:
        pairs = zip(self.scorers, self.weights.tolist(), strict=True)
        kept = [(scorer.by_word, weight) for scorer, weight in pairs if weight]
        return MixtureLM(*zip(*kept, strict=True))

    def prefixes(self):
        return self.by_word.prefixes()

    def live(self):
        parts = [scorer.live() for scorer in self.scorers]
        return MixtureScorer(parts, self.weights, self.lms, self.spec)

    def with_weights(self, weights: Sequence[float]) -> "MixtureScorer":
        return MixtureScorer(self.scorers, weights, self.lms, self.spec)

    def with_oov_penalty(self, penalty):
        parts = [scorer.with_oov_penalty(penalty) for scorer in self.scorers]
        return MixtureScorer(parts, self.weights, self.lms, self.spec)


def predict_same_tokens(scorers: Sequence[Scorer]) -> bool:
    """Return whether all models have one vocabulary, or all predict words of one normaliser."""
    first, *others = [scorer.subword for scorer in scorers]
    if first and all(other and other.hash == first.hash for other in others):
        return True
    normalisers = [scorer.subword.normaliser for scorer in scorers if scorer.subword]
    same = all(normaliser == normalisers[0] for normaliser in normalisers)
    return same and all(scorer.open_words for scorer in scorers)
