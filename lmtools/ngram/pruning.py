"""Entropy pruning of back-off models (Stolcke 1998)."""

from collections.abc import Sequence

import numpy as np

from lmtools.ngram.backoff import (
    SHIFT,
    TINY,
    WORD,
    BackoffModel,
    Level,
    backoff_weights,
    history_probabilities,
    ones,
    pack,
    sum_masses,
)
from lmtools.ngram.sentences import EOS


def prune(model: BackoffModel, threshold: float) -> BackoffModel:
    """Return `model` without the n-grams, of two words and more, that change its perplexity by less
    than the factor 1 + `threshold` each; contexts of those that stay are kept, and back-off weights
    are new. `model` is used up.

    As in SRILM each n-gram is judged alone, against the model as it was.
    """
    histories = history_probabilities(model, EOS)
    suffixes: list[np.ndarray | None] = [None]  # of each order's n-grams but the highest's
    for n in range(2, model.order):
        suffixes.append(model.suffixes(n, suffixes[-1]))
    needed, survivors = None, []
    for n in range(model.order, 1, -1):
        level, contexts = model.levels[n - 1], len(model.levels[n - 2])
        kept, start = [tuple(np.empty(0, dtype=kind) for kind in (np.int64, float, bool))], 0
        for key, prob in level.blocks():
            change = relative_change(
                model, n, (key, prob), below=suffixes[n - 2], histories=histories
            )
            stays = ~(change < threshold)
            if needed is not None:
                stays |= needed[start : start + len(key)]
            start += len(key)
            kept.append((key[stays], prob[stays], stays))
        model.levels.pop()
        survivors.append(list(map(np.concatenate, zip(*kept, strict=True))))
        needed = np.zeros(contexts, dtype=bool)
        needed[survivors[-1][0] >> SHIFT] = True
    return rebuild(model.levels[0], survivors[::-1])


def relative_change(
    model: BackoffModel,
    order: int,
    rows: tuple[np.ndarray, np.ndarray],
    *,
    below: np.ndarray | None,
    histories: Sequence[np.ndarray],
) -> np.ndarray:
    """Return (R,) by what share perplexity rises without each of the n-grams of an order alone that
    are `rows` of Level.blocks; `below` as in BackoffModel.shorten, `histories` those of the orders
    that are two lower and more.

    With p of the n-gram and q of the shorter one, the context's back-off weight is b = s / t, s
    being the mass that backs off; without the n-gram it is c = (s + p) / (t + q). The relative
    entropy is P(history) [p (log p - log(c q)) + s (log b - log c)].
    """
    key, prob = rows
    q = model.lower(order, key, model.shorten(order, below, key))
    first, followed, left, shorter = sum_masses(key, prob, q)
    contexts = slice(first, first + len(followed))
    if order == 2:
        history = histories[0][contexts]
    else:
        level = model.levels[order - 2]
        history = histories[order - 3][level.key[contexts] >> SHIFT] * level.prob[contexts]
    before = backoff_weights(followed, left, shorter)
    context = (key >> SHIFT) - first
    mass = np.maximum(left, 0)[context]
    with np.errstate(divide="ignore", invalid="ignore"):
        after = (mass + prob) / (np.maximum(shorter, 0)[context] + q)
        gain = prob * (np.log(prob) - np.log(after * q))
        backed_off = mass * (np.log(before)[context] - np.log(after))
    gain[prob == 0] = 0
    backed_off[mass <= TINY] = 0
    return np.expm1(history[context] * (gain + backed_off))


def rebuild(unigrams: Level, survivors: Sequence[Sequence[np.ndarray]]) -> BackoffModel:
    """Return the model of unigrams and of what stays of each order from 2: keys and probabilities,
    and which of the former n-grams these are, whose indices are those of contexts.
    """
    result = BackoffModel([Level(unigrams.key, unigrams.prob, ones(len(unigrams)))])
    place = None
    for key, prob, stays in survivors:
        context = key >> SHIFT if place is None else place[key >> SHIFT]
        result.levels.append(Level(pack(context, key & WORD), prob, ones(len(key))))
        place = np.cumsum(stays, dtype=np.int32) - 1
    result.drop_empty()
    result.set_backoffs()
    return result
