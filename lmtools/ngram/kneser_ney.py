"""Interpolated modified Kneser-Ney smoothing (Chen and Goodman 1998) as KenLM's lmplz does it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lmtools.ngram.counts import Grams
from lmtools.ngram.sentences import BOS, UNK

FALLBACK = (0.5, 1.0, 1.5)  # lmplz's --discount_fallback
CLASSES = len(FALLBACK)  # adjusted counts of 1, 2, 3 and more have a discount each


@dataclass(frozen=True, eq=False)
class Estimate:
    """Smoothed probabilities and back-off weights, a list entry an order, in the order of the
    Grams; the highest has no back-off.

    prob[n], backoff[n] (N,): probabilities, not logs. discounts[n]: D1, D2, D3+; fallback: the
    orders (from 1) whose counts of counts gave no discounts, so that FALLBACK is used.
    """

    grams: list[Grams]
    prob: list[np.ndarray]
    backoff: list[np.ndarray]
    discounts: list[tuple[float, ...]]
    fallback: list[int]


def estimate(
    grams: Sequence[Grams], closed: bool = False, min_counts: Sequence[int] = ()
) -> Estimate:
    """The interpolated modified Kneser-Ney model of `grams`, orders 1 to len(grams).

    `min_counts` (orders,), none below the one before it, the first 1: n-grams that occur less often
    are left out, and their counts are their contexts' to back off with. They count for the
    discounts and for shorter n-grams, as with lmplz's --prune.
    Of a `closed` vocabulary <unk>, which the text has not, gets probability 0; else it shares the
    uniform distribution, as in lmplz.
    """
    prob, backoff, discounts, fallback = [], [], [], []
    # the uniform distribution over all words but <s>
    lower = np.full(1, 1 / (len(grams[0]) - 1 - closed))
    counts = adjust_counts(grams)
    kept = [
        gram.occurrences >= least if least > 1 else np.full(len(gram), True)
        for gram, least in zip(grams, min_counts or [1] * len(grams), strict=True)
    ]
    for n, (gram, count, statistic) in enumerate(
        zip(grams, counts, statistics(grams, counts), strict=True), 1
    ):
        amounts = discount(statistic)
        fallback += [n] if amounts is None else []
        discounts.append(amounts or FALLBACK)
        own, free = shares(gram, count, kept[n - 1], discounts[-1], len(lower))
        if n > 1:
            backoff.append(free)
        lower = own + free[gram.context] * lower[gram.suffix]
        if n == 1:
            lower[BOS] = 1
            lower[UNK] = 0 if closed else lower[UNK]
        prob.append(lower)
    if not all(map(np.all, kept)):
        prob, backoff = (
            [each[keep] for each, keep in zip(values, kept, strict=False)]
            for values in (prob, backoff)
        )
        grams = select(grams, kept)
    return Estimate(list(grams), prob, backoff, discounts, fallback)


def adjust_counts(grams: Sequence[Grams]) -> list[np.ndarray]:
    """Adjusted counts, an array (N,) an order: occurrences in the highest order and after <s>,
    elsewhere distinct words to the left.
    """
    counts = []
    for gram, longer in pairwise(grams):
        extensions = np.bincount(longer.suffix, minlength=len(gram))
        counts.append(np.where(gram.first == BOS, gram.occurrences, extensions))
    return [*counts, grams[-1].occurrences]


def statistics(grams: Sequence[Grams], counts: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Counts of counts, an array (5,) an order: how many n-grams have adjusted count j.

    lmplz takes occurrences, not the adjusted count, of the very last n-gram in suffix order and of
    its suffixes; so do we, since on a small text one n-gram more or less moves the discounts.
    """
    result = [np.bincount(np.minimum(count, 5), minlength=6)[:5] for count in counts]
    for gram, count, tally in zip(grams[:-1], counts, result, strict=False):
        for value, change in ((count[-1], -1), (gram.occurrences[-1], 1)):
            if value < 5:
                tally[value] += change
        if gram.first[-1] == BOS:
            break
    return result


def discount(statistic: np.ndarray) -> tuple[float, ...] | None:
    """D1, D2, D3+ of one order (Chen and Goodman, Eq. 26); None if undefined or not in [0, count].

    Computed in float32 as lmplz does, so that the two agree on which are outside.
    """
    if not statistic[1 : CLASSES + 1].all():
        return None
    n = statistic.astype(np.float32)
    y = n[1] / np.float32(statistic[1] + 2.0 * statistic[2])
    amounts = tuple(
        float(np.float32(j) - np.float32(j + 1) * y * n[j + 1] / n[j])
        for j in range(1, CLASSES + 1)
    )
    return amounts if all(0 <= amount <= j for j, amount in enumerate(amounts, 1)) else None


def shares(
    gram: Grams, count: np.ndarray, kept: np.ndarray, amounts: Sequence[float], contexts: int
) -> tuple[np.ndarray, np.ndarray]:
    """(N,) each n-gram's discounted relative count in its context, and (contexts,) the mass that
    its context leaves to shorter ones: with all counts of those that are not `kept`.

    A context that nothing follows leaves all: its back-off weight is 1.
    """
    taken = np.where(kept, np.array([0.0, *amounts])[np.minimum(count, CLASSES)], count)
    total = np.bincount(gram.context, weights=count, minlength=contexts)
    free = np.bincount(gram.context, weights=taken, minlength=contexts)
    free = np.divide(free, total, out=np.ones(contexts), where=total > 0)
    return (count - taken) / total[gram.context], free


def select(grams: Sequence[Grams], kept: Sequence[np.ndarray]) -> list[Grams]:
    """The `kept` n-grams, whose suffixes and contexts are kept too."""
    chosen, place = [], np.zeros(1, dtype=np.int32)
    for gram, keep in zip(grams, kept, strict=True):
        suffix, context = place[gram.suffix[keep]], place[gram.context[keep]]
        chosen.append(Grams(gram.first[keep], suffix, context, gram.occurrences[keep]))
        place = np.cumsum(keep, dtype=np.int32) - 1
    return chosen
