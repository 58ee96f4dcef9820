"""Entropy pruning of back-off models (Stolcke 1998)."""

from collections.abc import Sequence

import numpy as np

from lmtools.ngram.backoff import (
    ABSENT,
    SHIFT,
    TINY,
    WORD,
    BackoffModel,
    Level,
    NgramRows,
    backoff_weights,
    history_probabilities,
    ones,
    pack,
    sum_masses,
)
from lmtools.ngram.disk import DiskArray, LevelFile
from lmtools.ngram.sentences import EOS

COLUMNS = "key", "prob", "suffix"


def prune(model: BackoffModel, threshold: float, folder=None) -> BackoffModel:
    """Return `model`, which is used up, without the n-grams of two words and more that change its
    perplexity by less than the factor 1 + `threshold` each, judged alone as in SRILM; contexts of
    those that stay are kept, and back-off weights are new.
    """
    result = renumber(model.levels[0], select_ngrams(model, threshold, folder), folder)
    result.drop_empty()
    result.set_backoffs()
    return result


def select_ngrams(
    model: BackoffModel, threshold: float, folder
) -> list[tuple[Level, np.ndarray | None]]:
    """Return what stays of each order from 2, and which n-grams, bool (N,), None of the highest."""
    histories = history_probabilities(model, EOS)
    model.complete_suffixes()
    needed, survivors = None, []
    for n in range(model.order, 1, -1):
        level, contexts = model.levels[n - 1], len(model.levels[n - 2])
        kept, stay, start = LevelFile(folder, COLUMNS), DiskArray(folder, bool), 0
        for rows in level.blocks():
            stays = ~(relative_change(model, n, rows, histories) < threshold)
            if needed is not None:
                stays |= needed[start : start + len(stays)]
            start += len(stays)
            kept.append(**{name: getattr(rows, name)[stays] for name in COLUMNS})
            stay.append(stays)
            model.levels[n - 2].release()
        model.levels.pop()
        level = kept.map()
        survivors.append((level, stay.read() if survivors else None))
        needed = np.zeros(contexts, dtype=bool)
        for rows in level.blocks():
            needed[rows.key >> SHIFT] = True
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


def renumber(
    unigrams: Level, survivors: Sequence[tuple[Level, np.ndarray | None]], folder
) -> BackoffModel:
    """Return the model, without back-off weights, of unigrams and what `select_ngrams` returned."""
    result = BackoffModel([Level(unigrams.key, unigrams.prob, ones(len(unigrams)))])
    place = np.arange(len(unigrams), dtype=np.int32)
    for level, stays in survivors:
        placed = LevelFile(folder, COLUMNS)
        for key, prob, suffix in level.blocks():
            key = pack(place[key >> SHIFT], key & WORD)
            shorter = suffix.copy()
            shorter[suffix >= 0] = place[suffix[suffix >= 0]]
            placed.append(key=key, prob=prob, suffix=shorter)
        result.levels.append(placed.map())
        if stays is not None:  # where the next order's contexts and suffixes are
            place = np.cumsum(stays, dtype=np.int32)
            place -= 1
            place[~stays] = ABSENT
    return result
