"""Interpolated modified Kneser-Ney smoothing (Chen and Goodman 1998) as KenLM's lmplz does it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from lmtools.base.log import track
from lmtools.ngram.counts import BLOCK, Buckets, DiskArray, Grams, choose_bounds
from lmtools.ngram.sentences import BOS, UNK

FALLBACK = (0.5, 1.0, 1.5)  # lmplz's --discount_fallback
CLASSES = len(FALLBACK)  # adjusted counts of 1, 2, 3 and more have a discount each
# an n-gram without the probability that it has: what sorts by context, and what shares need
ENTRY = np.dtype([("key", "i8"), ("lower", "f8"), ("count", "i8"), ("kept", "?")])
SMOOTHED = np.dtype([("prob", "f8"), ("context", "i4")])
RECORD = 112  # bytes that sorting takes for each ENTRY


@dataclass(frozen=True)
class Estimate:
    """The discounts D1, D2, D3+ of each order; fallback: orders (from 1) that use FALLBACK."""

    discounts: list[tuple[float, ...]]
    fallback: list[int]


def estimate(grams: Sequence[Grams], memory: int, folder=None, closed: bool = False) -> Estimate:
    """Give `grams`, orders 1 to len(grams), their probabilities and, below the highest order,
    back-off weights by interpolated modified Kneser-Ney; sorts in about `memory` bytes.

    N-grams that are not kept leave their counts to their contexts, to back off with. They count for
    the discounts and for shorter n-grams, as with lmplz's --prune.
    Of a `closed` vocabulary <unk>, which the text has not, gets probability 0; else it shares the
    uniform distribution, as in lmplz.
    """
    given = [discount(statistic) for statistic in statistics(grams)]
    discounts = [amounts or FALLBACK for amounts in given]
    size = len(grams[0])
    words = np.zeros(size, dtype=ENTRY)
    # the uniform distribution over all words but <s>
    words["lower"] = 1 / (size - 1 - closed)
    words["count"], words["kept"] = grams[0].count.read(), 1
    prob, _ = smooth(words, np.zeros(size, dtype=np.int32), discounts[0])
    prob[BOS] = 1
    prob[UNK] = 0 if closed else prob[UNK]
    grams[0].prob.append(prob)
    grams[0].context.append(np.zeros(size))
    bits = (size - 1).bit_length()
    for lower, gram, amounts in zip(grams, grams[1:], discounts[1:], strict=False):
        smooth_order(lower, gram, amounts, bits=bits, memory=memory, folder=folder)
    return Estimate(discounts, [n for n, amounts in enumerate(given, 1) if amounts is None])


def statistics(grams: Sequence[Grams]) -> list[np.ndarray]:
    """Return counts of counts, an array (5,) an order: how many n-grams have adjusted count j.

    lmplz takes occurrences, not the adjusted count, of the very last n-gram in suffix order and of
    its suffixes; so do we, since on a small text one n-gram more or less moves the discounts.
    """
    result = [gram.tally.copy() for gram in grams]
    for gram, tally in zip(grams[:-1], result, strict=False):
        first, count, occurrences = gram.last
        for value, change in ((count, -1), (occurrences, 1)):
            if value < 5:
                tally[value] += change
        if first == BOS:
            break
    return result


def discount(statistic: np.ndarray) -> tuple[float, ...] | None:
    """Return D1, D2, D3+ of one order (Chen and Goodman, Eq. 26); None if undefined or not in [0,
    count].

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


def pair_entries(lower: Grams, gram: Grams, bits: int) -> Iterator[np.ndarray]:
    """Yield the n-grams of one order from two words on as blocks of ENTRYs; `lower` are shorter."""
    for start in range(0, len(gram), BLOCK):
        rows = start, start + BLOCK
        suffix = gram.suffix.read(*rows)
        # suffixes are sorted
        low, high = int(suffix[0]), int(suffix[-1]) + 1
        suffix -= low
        block = np.empty(len(suffix), dtype=ENTRY)
        block["key"] = lower.context.read(low, high)[suffix]
        block["key"] <<= bits
        block["key"] |= gram.first.read(*rows)
        block["lower"] = lower.prob.read(low, high)[suffix]
        block["count"], block["kept"] = gram.count.read(*rows), gram.kept.read(*rows)
        yield block


def smooth_order(
    lower: Grams, gram: Grams, amounts: Sequence[float], *, bits: int, memory: int, folder
) -> None:
    """Give the n-grams of one order probabilities and contexts, those one shorter back-off weights;
    arguments as of `pair_entries`. A context is found by its suffix (its n-gram's suffix's context)
    and first word: all are sorted by that pair.
    """
    blocks = partial(pair_entries, lower, gram, bits=bits)
    bounds = choose_bounds((block["key"] for block in blocks()), len(gram), memory // RECORD)
    buckets, smoothed = Buckets(folder, bounds, ENTRY), []
    for block in blocks():
        buckets.deal(block["key"], block)
    for part in track(buckets.parts, "smooth n-grams", len(gram), "n-gram", size=len):
        smoothed.append(DiskArray(folder, SMOOTHED))
        entry = part.read()
        part.close()
        if len(entry):
            smoothed[-1].append(smooth_range(entry, lower, amounts, bits))
    lower.backoff.append(np.ones(len(lower) - len(lower.backoff)))
    for rows in buckets.collect(smoothed):
        gram.prob.append(rows["prob"])
        gram.context.append(rows["context"])


def smooth_range(
    entry: np.ndarray, lower: Grams, amounts: Sequence[float], bits: int
) -> np.ndarray:
    """Return a range's ENTRYs as SMOOTHED; give `lower` back-off weights up to its end."""
    context, keys = number_distinct(entry["key"])
    start = len(lower.backoff)
    numbers = find_sorted(lower, keys, bits, start)
    rows = np.empty(len(entry), dtype=SMOOTHED)
    rows["prob"], free = smooth(entry, context, amounts)
    rows["context"] = numbers[context]
    # a context that nothing follows leaves all to shorter ones
    weights = np.ones(numbers[-1] + 1 - start)
    weights[numbers - start] = free
    lower.backoff.append(weights)
    return rows


def find_sorted(grams: Grams, keys: np.ndarray, bits: int, start: int) -> np.ndarray:
    """Return (N,) which of `grams`, from `start` on, have the rising `keys` (suffix, first)."""
    numbers = np.empty(len(keys), dtype=np.int64)
    done = 0
    for low in range(start, len(grams), BLOCK):
        here = grams.suffix.read(low, low + BLOCK).astype(np.int64) << bits
        here |= grams.first.read(low, low + BLOCK)
        upto = int(np.searchsorted(keys, here[-1], side="right"))
        numbers[done:upto] = low + np.searchsorted(here, keys[done:upto])
        done = upto
        if done == len(keys):
            break
    return numbers


def number_distinct(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (N,) the rank of each of `keys` among those that are distinct, and these, sorted."""
    by_key = np.argsort(keys)
    ordered = keys[by_key]
    new = np.diff(ordered, prepend=-1) != 0
    rank = np.empty(len(keys), dtype=np.int32)
    rank[by_key] = np.cumsum(new) - 1
    return rank, ordered[new]


def smooth(
    entry: np.ndarray, context: np.ndarray, amounts: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return (N,) probabilities of ENTRYs, and (contexts,) mass left to shorter ones."""
    count = entry["count"]
    taken = np.array([0.0, *amounts])[np.minimum(count, CLASSES)]
    taken = np.where(entry["kept"], taken, count)
    total = np.bincount(context, weights=count)
    free = np.bincount(context, weights=taken) / total
    return (count - taken) / total[context] + free[context] * entry["lower"], free
