"""Entropy pruning of back-off models (Stolcke 1998)."""

import numpy as np

from lmtools.ngram.backoff import (
    CHUNK,
    SHIFT,
    TINY,
    BackoffModel,
    Level,
    backoff_weights,
    history_probabilities,
    ones,
    pack,
)
from lmtools.ngram.sentences import EOS


def prune(model: BackoffModel, threshold: float) -> BackoffModel:
    """Return `model` without the n-grams, of two words and more, that change its perplexity by less
    than the factor 1 + `threshold` each; contexts of those that stay are kept, and back-off weights
    are new.

    As in SRILM each n-gram is judged alone, against the model as it was.
    """
    history = history_probabilities(model, EOS)
    kept = [np.ones(len(level), dtype=bool) for level in model.levels]
    for n in range(model.order, 1, -1):
        low = relative_change(model, n, history[n - 2]) < threshold
        needed = np.zeros(len(low), dtype=bool)
        if n < model.order:
            needed[model.levels[n].context[kept[n]]] = True
        kept[n - 1] = ~low | needed
    return keep(model, kept)


def relative_change(model: BackoffModel, order: int, history: np.ndarray) -> np.ndarray:
    """Return (N,) by what share perplexity rises without each n-gram of an order alone; `history`:
    the probabilities of the contexts.

    With p of the n-gram and q of the shorter one, the context's back-off weight is b = s / t, s
    being the mass that backs off; without the n-gram it is c = (s + p) / (t + q). The relative
    entropy is P(history) [p (log p - log(c q)) + s (log b - log c)].
    """
    level = model.levels[order - 1]
    lower = model.lower(order)
    followed, left, shorter = model.masses(order, lower)
    before = backoff_weights(followed, left, shorter)
    change = lower
    for start in range(0, len(level), CHUNK):  # `lower` gives its memory to the result
        rows = slice(start, start + CHUNK)
        context, prob, q = level.key[rows] >> SHIFT, level.prob[rows], lower[rows]
        mass = np.maximum(left[context], 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            after = (mass + prob) / (np.maximum(shorter[context], 0) + q)
            gain = prob * (np.log(prob) - np.log(after * q))
            backed_off = mass * (np.log(before[context]) - np.log(after))
        gain[prob == 0] = 0
        backed_off[mass <= TINY] = 0
        change[rows] = np.expm1(history[context] * (gain + backed_off))
    return change


def keep(model: BackoffModel, kept: list[np.ndarray]) -> BackoffModel:
    """Return the n-grams marked in `kept`, (N,) bool an order, with back-off weights for them."""
    place = np.arange(1)
    result = BackoffModel()
    for level, chosen in zip(model.levels, kept, strict=True):
        context = place[level.context[chosen]]
        place = np.cumsum(chosen) - 1
        key = pack(context, level.word[chosen])
        result.levels.append(Level(key, level.prob[chosen], ones(len(key))))
    result.drop_empty()
    result.set_backoffs()
    return result
