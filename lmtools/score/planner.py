"""Scoring many texts with the least work and the same bits each time: each distinct one once, in
batches of one shape.

The bits of a matrix product depend on its shape, and with several threads on the place of a row in
it. So a sentence goes through only with sentences of its own cost, always as many of them as
`batch_size` says (a batch that is not full is filled up with copies), and on a CPU one thread
computes a batch, several batches at a time: what else there is to score then changes no bit of a
sentence's score. benchmarks/batches.py measures what it costs.

Not covered, equal but for rounding (1e-6 nats a sentence in float32, 4e-4 in bfloat16): two-way
models, whose shapes depend on spellings; adaptive softmax; lattices; carried states; batches halved
for want of memory; GPUs.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from lmtools.errors import UserError
from lmtools.score.base import Scorer

# sentences in a batch are a multiple of it, or one: rows that a kernel's tiles leave over are
# summed in another order
EIGHT = 8
APART = 4096  # sentences at a time of models that compute each by itself


def batch_size(cost: int, rows: int) -> int:
    """How many sentences of `cost` model rows make a batch: as many eights as `rows` hold, eight
    where four times as many do, else one.
    """
    if EIGHT * cost > 4 * rows:
        return 1
    return max(1, rows // cost // EIGHT) * EIGHT


def plan_batches(costs: Sequence[int], rows: int | None) -> list[list[int]]:
    """Indices into `costs` in batches of equal cost, each of `batch_size` sentences but for the
    last of a cost; the cheapest first.

    `rows` None: sentences that are computed one by one, whose batches are any.
    """
    order = sorted(range(len(costs)), key=lambda i: (costs[i], i))
    result: list[list[int]] = []
    for index in order:
        last = result[-1] if result else []
        if rows is None:
            fits = 0 < len(last) < APART
        else:
            fits = (
                bool(last)
                and costs[last[0]] == costs[index]
                and len(last) < batch_size(costs[index], rows)
            )
        if fits:
            last.append(index)
        else:
            result.append([index])
    return result


def score_batch(scorer: Scorer, sentences: list) -> list[np.ndarray]:
    """The scorer's token log-probabilities of a batch of `plan_batches`; one that does not fit into
    memory is halved until it does.
    """
    return within_memory(scorer.log_probs, sentences, full_batch_size(scorer, sentences))


def full_batch_size(model, sentences: Sequence) -> int:
    """How many sentences a batch with these has when it is full; `model` is a scorer or an
    encoder.
    """
    return (
        len(sentences)
        if model.rows is None
        else max(len(sentences), batch_size(model.cost(sentences[0]), model.rows))
    )


def within_memory(compute: Callable[[list], list], sentences: list, size: int) -> list:
    """What `compute` gives of a batch filled up to `size`, one value a sentence; what does not fit
    into memory is halved until it does.

    Halved, it has another shape, so that values may differ in their last bits from those of a
    machine with more memory.
    """
    try:
        return compute([*sentences, *sentences[-1:] * (size - len(sentences))])[: len(sentences)]
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        if size == 1:
            raise UserError(
                f"a text of {len(sentences[0])} tokens does not fit into memory; drop it or use a"
                " larger machine"
            ) from None
    torch.cuda.empty_cache()
    half = size // 2
    parts = [sentences[begin : begin + half] for begin in range(0, len(sentences), half)]
    return [value for part in parts for value in within_memory(compute, part, half)]


def out_of_memory(error: Exception) -> bool:
    """Whether memory, of the machine or of a device, did not suffice."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "allocate memory" in str(
        error
    )


@contextlib.contextmanager
def one_thread() -> Iterator[int]:
    """A context in which each operation of torch has one thread; how many they had before."""
    before = torch.get_num_threads()
    if before > 1:
        torch.set_num_threads(1)
    try:
        yield before
    finally:
        if before > 1:
            torch.set_num_threads(before)


def compute_all(model, work: Sequence, compute: Callable) -> Iterator:
    """What `compute` makes of each piece of work for `model`, a scorer or an encoder, in order.

    On a CPU they are as many at a time as torch has threads, each with one thread; elsewhere one
    after the other.
    """
    if model.signature.get("device") != "cpu":
        yield from map(compute, work)
        return
    with one_thread() as threads:
        if min(threads, len(work)) <= 1:
            yield from map(compute, work)
            return
        with ThreadPoolExecutor(threads) as pool:
            try:
                yield from pool.map(compute, work)
            finally:
                pool.shutdown(cancel_futures=True)


def score_all(scorer: Scorer, sentences: Sequence) -> Iterator[tuple[list[int], list[np.ndarray]]]:
    """Pairs (indices, their token log-probabilities), batch by batch, of distinct `sentences`."""
    plan = plan_batches([scorer.cost(s) for s in sentences], scorer.rows)
    yield from zip(
        plan,
        compute_all(scorer, plan, lambda batch: score_batch(scorer, [sentences[i] for i in batch])),
        strict=True,
    )
