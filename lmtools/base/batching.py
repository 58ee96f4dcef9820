"""Which of many sentences are computed together: each distinct one once, those of equal or similar
cost; and in which windows a text that does not fit a model's positions is read.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np

# sentences in a batch are a multiple of it, or one: rows that a kernel's tiles leave over are
# summed in another order
EIGHT = 8
RAGGED_ROWS = 256  # the most of a ragged batch; a sentence of more is a batch of its own
APART = 4096  # sentences at a time of models that compute each by itself


class Numbering:
    """Numbers of hashable things, from 0 in the order of their coming."""

    def __init__(self, *things):
        self.things = list(things)
        self.numbers = {thing: number for number, thing in enumerate(things)}

    def __call__(self, thing) -> int:
        number = self.numbers.setdefault(thing, len(self.things))
        if number == len(self.things):
            self.things.append(thing)
        return number


def find_distinct(items: Iterable[Hashable]) -> tuple[list, np.ndarray]:
    """Return the distinct items by first places, and which of them each is, int64 (N,)."""
    number: dict[Hashable, int] = {}
    which = [number.setdefault(item, len(number)) for item in items]
    return list(number), np.array(which, dtype=np.int64)


def prepare_distinct(
    texts: Sequence[str], prepare: Callable[[list[str]], list[tuple]]
) -> tuple[list[tuple], np.ndarray]:
    """Return the distinct sentences of `texts`, and which of them each is, int64 (N,)."""
    distinct, which = find_distinct(texts)
    sentences, place = find_distinct(prepare(distinct))
    return sentences, place[which]


def batch_size(cost: int, rows: int) -> int:
    """Return the sentences of `cost` rows in a batch: eights that `rows` hold, eight, or one."""
    if EIGHT * cost > 4 * rows:
        return 1
    return max(1, rows // cost // EIGHT) * EIGHT


def full_batch_size(model, sentences: Sequence) -> int:
    """Return the sentences of a full batch that has these; `model`: a scorer or an encoder."""
    if model.rows is None or model.ragged:
        return len(sentences)
    return max(len(sentences), batch_size(model.cost(sentences[0]), model.rows))


def plan_batches(costs: Sequence[int], rows: int | None, ragged: bool = False) -> list[list[int]]:
    """Return indices into `costs` in batches of equal cost, the cheapest first. `ragged`: of any
    costs, at most `rows` and RAGGED_ROWS together. `rows` None: batches are any.
    """
    result: list[list[int]] = []
    filled = 0  # rows of the last batch
    for index in np.argsort(costs, kind="stable").tolist():
        last = result[-1] if result else []
        cost = costs[index]
        if rows is None:
            fits = 0 < len(last) < APART
        elif ragged:
            fits = last and filled + cost <= min(rows, RAGGED_ROWS)
        else:
            fits = last and costs[last[0]] == cost and len(last) < batch_size(cost, rows)
        if fits:
            last.append(index)
            filled += cost
        else:
            result.append([index])
            filled = cost
    return result


def cut_batches(widths: np.ndarray, rows: int) -> np.ndarray:
    """Return where ascending `widths` are cut into batches of at most `rows` positions, padded."""
    cuts, begin = [], 0
    while True:
        # Rows begin..end-1 are padded to widths[end-1]: the cost is ascending in `end`, so the last
        # that fits is found by bisection.
        low, high = begin + 1, min(len(widths), begin + max(1, rows // int(widths[begin])))
        while low < high:
            middle = (low + high + 1) // 2
            if (middle - begin) * widths[middle - 1] <= rows:
                low = middle
            else:
                high = middle - 1
        begin = low
        if begin >= len(widths):
            return np.array(cuts, dtype=np.int64)
        cuts.append(begin)


def stride(longest: int) -> int:
    """Return the number of tokens between the beginnings of two windows."""
    return max(1, longest // 2)


def cut_windows(length: int, longest: int) -> list[tuple[int, int, int, int]]:
    """Cover `length` tokens by windows of at most `longest`: (begin, end, first, last) with the
    scores first:last of a window's end - begin + 1 to be used; together they are those of the
    tokens and the end of sentence, once each, in order, each where it has most context.
    """
    if length <= longest:
        return [(0, length, 0, length + 1)]
    begins = [*range(0, length - longest, stride(longest)), length - longest]
    cuts = [0, *(begin + longest // 4 for begin in begins[1:]), length + 1]
    return [
        (begin, begin + longest, first - begin, last - begin)
        for begin, first, last in zip(begins, cuts, cuts[1:], strict=False)
    ]


def count_rows(length: int, longest: int, boundary: int, masked: bool) -> int:
    """Return model rows of a sentence in windows; `masked`: it is read once a token."""
    width = min(length, longest) + boundary
    return len(cut_windows(length, longest)) * (width * width if masked else width)


def tokens_kept(longest: int) -> int:
    """Return how many last tokens stay of a prefix whose `longest` fill a model's positions."""
    return longest - stride(longest)
