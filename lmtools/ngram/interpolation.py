"""Linear interpolation of n-gram models, sum_i w_i p_i(word | those before), as one static model.

The weights are found by expectation maximisation, as SRILM's compute-best-mix finds them (Jelinek
and Mercer 1980).
"""

from collections.abc import Iterable, Sequence

import numpy as np

from lmtools.base.errors import UserError
from lmtools.ngram.backoff import SHIFT, UNKNOWN, BackoffModel, Level, ones, pack
from lmtools.ngram.sentences import BOS, EOS

STEPS, CHANGE = 10_000, 1e-9  # of expectation maximisation: at most, and of a weight when it ends


def interpolate(models: Sequence[BackoffModel], weights: np.ndarray) -> BackoffModel:
    """Return the model of all n-grams of `models`, each with its weighted mean probability."""
    order = max(model.order for model in models)
    parts = list(map(MixedModel, models))
    prob = sum(weight * part.probs for weight, part in zip(weights, parts, strict=True))
    result = BackoffModel([Level(np.arange(len(prob)), prob, ones(len(prob)))])
    for n in range(2, order + 1):
        ngrams = [part.ngrams(n) for part in parts]
        key = np.concatenate([each.key for each in ngrams])
        key.sort(kind="stable")  # which merges what is sorted; np.unique would hash it
        key = key[np.diff(key, prepend=-1) > 0]
        places = [np.searchsorted(key, each.key) for each in ngrams]
        suffix = np.full(len(key), UNKNOWN, dtype=np.int32)  # as far as the models know it
        for at, each in zip(places, ngrams, strict=True):
            suffix[at] = np.maximum(suffix[at], each.suffix)
        shorter = result.shorten(n, key, suffix)
        rows = zip(weights, parts, ngrams, places, strict=True)
        prob = sum(
            weight * part.find_probabilities(each, at, key, shorter, mixture=result)
            for weight, part, each, at in rows
        )
        result.levels.append(Level(key, prob, ones(len(key)), shorter))
    result.set_backoffs()
    return result


class MixedModel:
    """A model in a mixture: what it gives the last order's n-grams, and which are its own."""

    def __init__(self, model: BackoffModel):
        self.model = model
        unigrams = model.levels[0]
        self.probs, self.backoffs = unigrams.prob, unigrams.backoff
        self.places = np.arange(len(unigrams))

    def ngrams(self, n: int) -> Level:
        """Return its n-grams of an order with keys and suffixes in the mixture."""
        if n > self.model.order:
            return Level(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
        level = self.model.levels[n - 1]
        shorter = np.full(len(level), UNKNOWN, dtype=np.int32)
        known = level.suffix >= 0
        shorter[known] = self.places[level.suffix[known]]
        key = pack(self.places[level.context], level.word)
        return Level(key, level.prob, level.backoff, shorter)

    def find_probabilities(
        self, ngrams: Level, at: np.ndarray, key: np.ndarray, shorter: np.ndarray, *, mixture
    ) -> np.ndarray:
        """Return (R,) its probabilities of the mixture's next n-grams, by `key` and `shorter`; its
        own `ngrams` are `at` these places.
        """
        n = mixture.order + 1
        probs = self.backoffs[key >> SHIFT] * self.probs[shorter]
        if len(others := np.flatnonzero(shorter < 0)):
            words = mixture.spell_keys(n, key[others])
            probs[others] = self.model.query(words, n - 2)
        probs[at] = ngrams.prob
        self.probs, self.backoffs, self.places = probs, np.ones(len(key)), at
        self.backoffs[at] = ngrams.backoff
        return probs


def token_probabilities(
    models: Sequence[BackoffModel], sentences: Iterable[Sequence[int]]
) -> np.ndarray:
    """Return (P, N) probabilities of the tokens and ends of `sentences` under each model."""
    ids = np.array([i for sentence in sentences for i in (BOS, *sentence, EOS)], dtype=np.int64)
    at = np.arange(len(ids))
    place = at - np.maximum.accumulate(np.where(ids == BOS, at, 0))  # in the sentence, <s> is 0
    order = max(model.order for model in models)
    probs = np.zeros((len(models), len(ids)))
    for n in range(2, order + 1) if order > 1 else (2,):
        ends = np.flatnonzero(place + 1 >= n if n == max(order, 2) else place + 1 == n)
        words = ids[ends[:, None] + np.arange(1 - n, 1)]
        for row, model in zip(probs, models, strict=True):
            row[ends] = model.query(words)
    return probs[:, ids != BOS]


def complete_weights(weights: Sequence[float], lms: Sequence[str]) -> np.ndarray:
    """Return weights (P,) of `lms`, the last maybe the rest of 1; UserError for other sums."""
    completed = np.array(weights, dtype=np.float64)
    if len(completed) == len(lms) - 1:
        completed = np.append(completed, 1 - completed.sum())
    if len(completed) != len(lms) or (completed < 0).any() or abs(completed.sum() - 1) > 1e-6:
        given = " ".join(f"{weight:g}" for weight in weights)
        raise UserError(
            f"--mix {given}: give a weight from 0 for each of {len(lms)} models, 1 in sum (the"
            " last may be left out)"
        )
    return completed


def tune_mixture(logs: np.ndarray) -> np.ndarray:
    """Return the weights (P,) under which tokens of log-probabilities `logs` (P, N) are most
    probable, by expectation maximisation from equal weights; there is one maximum only.
    """
    relative = np.exp(logs - logs.max(0))  # (P, N); factors of a token do not count
    weights = np.full(len(logs), 1 / len(logs))
    for _ in range(STEPS):
        shares = weights[:, None] * relative
        updated = (shares / shares.sum(0)).mean(1)
        change = np.abs(updated - weights).max()
        weights = updated
        if change < CHANGE:
            break
    return weights / weights.sum()
