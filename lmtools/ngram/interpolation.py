"""Linear interpolation of n-gram models, sum_i w_i p_i(word | those before), as one static model.

The weights are found by expectation maximisation, as SRILM's compute-best-mix finds them (Jelinek
and Mercer 1980).
"""

from collections.abc import Iterable, Sequence

import numpy as np

from lmtools.base.errors import UserError
from lmtools.ngram.backoff import BackoffModel, Level, ones, pack
from lmtools.ngram.sentences import BOS, EOS

STEPS, CHANGE = 10_000, 1e-9  # of expectation maximisation: at most, and of a weight when it ends


def interpolate(models: Sequence[BackoffModel], weights: np.ndarray) -> BackoffModel:
    """Return the model of all n-grams of `models`, over the same ids, each with the weighted mean
    of their probabilities, and with back-off weights that make those of every history sum to 1.

    What none of them lists is the mixture's only as far as back-off tells it.
    """
    # index of each model's n-grams of the order below among those of the mixture
    places = [np.zeros(1, dtype=np.int64) for _ in models]
    result = BackoffModel()
    for n in range(1, max(model.order for model in models) + 1):
        keys = [
            pack(place[model.levels[n - 1].context], model.levels[n - 1].word)
            if n <= model.order
            else np.empty(0, dtype=np.int64)
            for model, place in zip(models, places, strict=True)
        ]
        key = np.concatenate(keys)
        key.sort(kind="stable")  # which merges what is sorted; np.unique would hash it
        key = key[np.diff(key, prepend=-1) > 0]
        places = [np.searchsorted(key, part) for part in keys]
        level = Level(key, np.zeros(len(key)), ones(len(key)))
        result.levels.append(level)
        for rows, words in result.pieces(n):
            level.prob[rows] = sum(
                weight * model.query(words) for weight, model in zip(weights, models, strict=True)
            )
    result.set_backoffs()
    return result


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
    """Return the weight of each of `lms`, (P,), in their order; the last one's may be missing and
    is the rest of 1. UserError unless they are from 0 and sum to 1.
    """
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
    probable.

    Expectation maximisation from equal weights. The likelihood has no other maximum than the
    greatest.
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
