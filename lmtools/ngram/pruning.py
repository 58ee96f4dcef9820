"""Entropy pruning of back-off models (Stolcke 1998)."""

from collections.abc import Sequence

import numpy as np

from lmtools.ngram.backoff import (
    ABSENT,
    SHIFT,
    TINY,
    BackoffModel,
    Level,
    NgramRows,
    backoff_weights,
    history_probabilities,
    ones,
    pack,
    sum_masses,
)
from lmtools.ngram.sentences import EOS


def prune(model: BackoffModel, threshold: float) -> BackoffModel:
    """Return `model`, which is used up, without the n-grams of two words and more that change its
    perplexity by less than the factor 1 + `threshold` each, judged alone as in SRILM; contexts of
    those that stay are kept, and back-off weights are new.
    """
    result = renumber(model.levels[0], select_ngrams(model, threshold))
    result.drop_empty()
    result.set_backoffs()
    return result


def select_ngrams(model: BackoffModel, threshold: float) -> list[tuple[Level, np.ndarray | None]]:
    """Return what stays of each order from 2, and which n-grams, bool (N,), None of the highest."""
    histories = history_probabilities(model, EOS)
    model.complete_suffixes()
    needed, survivors = None, []
    for n in range(model.order, 1, -1):
        level = model.levels[n - 1]
        stays = [
            ~(relative_change(model, n, rows, histories) < threshold) for rows in level.blocks()
        ]
        stays = np.concatenate([np.empty(0, dtype=bool), *stays])
        if needed is not None:
            stays |= needed
        model.levels.pop()
        key, prob, suffix = (each[stays] for each in (level.key, level.prob, level.suffix))
        level = Level(key, prob, ones(len(key)), suffix)
        survivors.append((level, stays if survivors else None))
        needed = np.zeros(len(model.levels[-1]), dtype=bool)
        needed[level.context] = True
    return survivors[::-1]


def relative_change(
    model: BackoffModel, order: int, rows: NgramRows, histories: Sequence[np.ndarray]
) -> np.ndarray:
    """Return (R,) by what share perplexity rises without each of the n-grams of an order alone that
    are `rows` of Level.blocks; `histories` are those of the orders that are two lower and more.

    With p of the n-gram and q of the shorter one, the context's back-off weight is b = s / t, s
    being the mass that backs off; without the n-gram it is c = (s + p) / (t + q). The relative
    entropy is P(history) [p (log p - log(c q)) + s (log b - log c)].
    """
    key, prob, suffix = rows
    q = model.lower(order, key, model.shorten(order, key, suffix))
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


def renumber(unigrams: Level, survivors: Sequence[tuple[Level, np.ndarray | None]]) -> BackoffModel:
    """Return the model, without back-off weights, of unigrams and what `select_ngrams` returned."""
    result = BackoffModel([Level(unigrams.key, unigrams.prob, ones(len(unigrams)))])
    place = np.arange(len(unigrams), dtype=np.int32)
    for level, stays in survivors:
        shorter = level.suffix.copy()
        shorter[shorter >= 0] = place[shorter[shorter >= 0]]
        key = pack(place[level.context], level.word)
        result.levels.append(Level(key, level.prob, level.backoff, shorter))
        if stays is not None:  # where the next order's contexts and suffixes are
            place = np.cumsum(stays, dtype=np.int32)
            place -= 1
            place[~stays] = ABSENT
    return result
