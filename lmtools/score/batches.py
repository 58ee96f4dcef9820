"""Batches of sentences, computed with the least work and the same bits each time: of one shape, by
threads, within memory.

The bits of a matrix product depend on its shape, and with several threads on the place of a row in
it. So a sentence goes through only with sentences of its own cost, always as many of them as
lmtools.base.batching says (a batch that is not full is filled up with copies), and on a CPU one
thread computes a batch, several batches at a time: what else there is to score then changes no bit
of a sentence's score, with prepared weights (lmtools.models.engine) as without. Transformers that
score in one pass need no equal shapes where their products were tried and found to give a row the
same bits beside any others (lmtools.models.ragged): sentences of any lengths go through together,
and nothing is filled up but the last few rows. benchmarks/batches.py measures what both cost.

Not covered, equal but for rounding (1e-5 nats a sentence in float32, 4e-4 in bfloat16): hypotheses
that share beginnings, which left-to-right models compute once (lmtools.score.trees): their last
bits depend on what stands near them in the lists, and those of translations on what other
translations of the same source there are (backwards: what other sources of the same target), not on
what a cache knows; two-way models, whose shapes depend on spellings; adaptive softmax; lattices;
carried states; batches halved for want of memory; GPUs.
"""

import contextlib
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from lmtools.base.allocator import keep_freed_memory
from lmtools.base.batching import full_batch_size, plan_batches
from lmtools.base.errors import UserError
from lmtools.score.base import Scorer
from lmtools.score.trees import TreeBatch

KEPT = 1 << 25  # bytes of freed memory that a thread keeps for its next batch


def plan_work(
    sentences: Sequence, model, trees: Sequence[TreeBatch], known: Container[int] = ()
) -> list[list[int]]:
    """Plan batches of numbers of sentences: the `trees` that are not all `known`, then all others
    that are not, as `plan_batches` has them.
    """
    plan: list[list[int]] = [tree for tree in trees if not all(i in known for i in tree)]
    grown = {i for tree in trees for i in tree}
    rest = [i for i in range(len(sentences)) if i not in grown and i not in known]
    if not rest:  # whether a model is ragged is tried when it is asked
        return plan
    batches = plan_batches([model.cost(sentences[i]) for i in rest], model.rows, model.ragged)
    return plan + [[rest[i] for i in batch] for batch in batches]


def run_batches(model, work: Sequence[list], ask: Callable[[list], list]) -> Iterator[list]:
    """Return an iterator of what `ask` of `model`, a scorer or an encoder, answers to each batch of
    `plan_work`: a list of one value a sentence, in order.

    On a CPU they are as many at a time as torch has threads, each with one thread; elsewhere one
    after the other, and of a mixture too, whose models come here themselves.
    """
    if model.rows is None:
        return map(ask, work)
    sizes = [
        len(batch) if isinstance(batch, TreeBatch) else full_batch_size(model, batch)
        for batch in work
    ]
    run = partial(within_memory, ask)
    if model.signature.get("device") != "cpu":
        return map(run, work, sizes)
    return run_threads(run, work, sizes)


def run_threads(run: Callable, work: Sequence[list], sizes: Sequence[int]) -> Iterator[list]:
    """Yield `run` of each batch and its full size, by as many threads as torch has."""
    with one_thread() as threads:
        if min(threads, len(work)) <= 1:
            yield from map(run, work, sizes)
            return
        keep_freed_memory(KEPT)  # the kernel would clear pages for all threads in turn
        with ThreadPoolExecutor(threads) as pool:
            try:
                yield from pool.map(run, work, sizes)
            finally:
                pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def one_thread() -> Iterator[int]:
    """Give each operation of torch one thread inside the block; yield how many they had before."""
    import torch  # which n-grams do without

    before = torch.get_num_threads()
    if before > 1:
        torch.set_num_threads(1)
    try:
        yield before
    finally:
        if before > 1:
            torch.set_num_threads(before)


def within_memory(compute: Callable[[list], list], sentences: list, size: int) -> list:
    """Return the values of `compute` for a batch filled up to `size`, one a sentence; halve a batch
    that does not fit into memory until it does.

    Halved, it has another shape, so that values may differ in their last bits from those of a
    machine with more memory.
    """
    try:
        filled = type(sentences)([*sentences, *sentences[-1:] * (size - len(sentences))])
        return compute(filled)[: len(sentences)]
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        if size == 1:
            raise UserError(
                f"a text of {len(sentences[0])} tokens does not fit into memory; drop it or use a"
                " larger machine"
            ) from None
    import torch

    torch.cuda.empty_cache()
    half = size // 2
    parts = [
        type(sentences)(sentences[begin : begin + half]) for begin in range(0, len(sentences), half)
    ]
    return [value for part in parts for value in within_memory(compute, part, half)]


def out_of_memory(error: Exception) -> bool:
    """Return whether an error says that memory of the machine or of a device did not suffice."""
    of_device = type(error).__name__ == "OutOfMemoryError"  # torch's
    return of_device or isinstance(error, MemoryError) or "allocate memory" in str(error)


def score_all(scorer: Scorer, sentences: Sequence) -> Iterator[tuple[list[int], list[np.ndarray]]]:
    """Yield (indices, their token log-probabilities) of distinct `sentences`, batch by batch."""
    plan = plan_work(sentences, scorer, scorer.plan_trees(sentences))
    work = [type(batch)(sentences[i] for i in batch) for batch in plan]
    yield from zip(plan, run_batches(scorer, work, scorer.log_probs), strict=True)
