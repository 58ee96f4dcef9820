"""Scores of texts: each distinct sentence once, from the cache where it has it, else computed in
batches, here or by several processes, with the least work and the same bits each time.

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
import itertools
import sys
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from lmtools.base.batching import full_batch_size, plan_batches, prepare_distinct
from lmtools.base.computing import WHOLE, Computing, Shard, keep_freed_memory
from lmtools.base.context import current
from lmtools.base.errors import UserError, out_of_memory
from lmtools.base.log import ProgressBar
from lmtools.base.workers import REMEDY, as_completed, can_fork
from lmtools.score.base import Scorer
from lmtools.score.cache import Cache, cache_directory
from lmtools.score.trees import TreeBatch

WORTH_A_PROCESS = 100_000  # model rows; starting a process takes seconds
WORTH_A_FORK = 10_000  # and a fork of this one milliseconds
FORKED = ("score", "ppl")  # verbs with forks in the place of threads, which wait for each other
KEPT = 1 << 25  # bytes of freed memory that a thread keeps for its next batch


@dataclass(frozen=True)
class TextScores:
    """Of texts (N,): log-probability in nats with the end, tokens, unknown ones of these."""

    log_prob: np.ndarray
    tokens: np.ndarray
    unknown: np.ndarray
    kind: str
    signature: dict[str, str]


def score_texts(
    texts: Sequence,
    scorer: Scorer,
    computing: Computing,
    cache: Cache | None = None,
    shard: Shard = WHOLE,
) -> TextScores:
    """Score `texts` (pairs for a scorer of pairs); equal texts get equal scores, whatever else is
    there (on a CPU, but for rounding where beginnings are shared). `cache`: an open one; else
    `computing`'s. Of another part than `shard`: NaN.
    """
    sentences, which = prepare_distinct(texts, scorer.prepare)
    trees = scorer.plan_trees(sentences)
    own = None if cache else open_cache(scorer, computing)
    with contextlib.closing(own) if own else contextlib.nullcontext(cache) as store:
        if shard.count > 1:
            store = SharedWork(store, plan_work(sentences, scorer, trees), shard)
        missing = Missing(sentences, scorer, store, trees)
        with missing.progress(f"score {scorer.spec.lm}"):
            for number, values in sum_batches(missing.work, scorer, computing):
                refuse_not_finite(values, missing.work[number], scorer.spec.lm)
                missing.keep(number, values)
    sums = np.array([missing.values[i] for i in range(len(sentences))])
    columns = (column[which] for column in (sums, *count_scored(scorer, sentences)))
    return TextScores(*columns, kind=scorer.kind, signature=scorer.signature)


class SharedWork:
    """A cache in which other parts' work is NaN. Parts have whole batches, as the whole."""

    def __init__(self, cache: Cache, plan: Sequence[Sequence[int]], shard: Shard):
        left = (batch for n, batch in enumerate(plan) if n % shard.count + 1 != shard.number)
        others = itertools.chain.from_iterable(left)
        self.others, self.inner, self.put = dict.fromkeys(others, np.nan), cache, cache.put

    def get(self, sentences: Sequence) -> dict:
        return {**self.inner.get(sentences), **self.others}


def open_cache(scorer: Scorer, computing: Computing) -> Cache:
    """Open the cache of the scorer's results; the caller closes it."""
    return Cache(cache_directory(computing.cache), scorer.signature)


def count_scored(scorer: Scorer, sentences: Sequence[tuple]) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of tokens of each sentence with its end, and of unknown ones, (N,) each."""
    unknown = [scorer.unknown(sentence) for sentence in sentences]
    counts = np.array([(len(tokens) + 1, tokens.sum()) for tokens in unknown], dtype=np.int64)
    return tuple(counts.reshape(-1, 2).T)


class Missing:
    """What a cache lacks of distinct sentences: `work`, batches; `values` by number, the cache's
    first. Of `trees`, which go through together, one that lacks any is computed whole.
    """

    def __init__(self, sentences: Sequence, model, cache: Cache, trees: Sequence[TreeBatch] = ()):
        self.sentences, self.cache = sentences, cache
        self.values = dict(cache.get(sentences))
        self.plan = plan_work(sentences, model, trees, self.values)
        self.work = [type(batch)(sentences[i] for i in batch) for batch in self.plan]
        self.advance: Callable[[int], object] = lambda more: None

    @contextlib.contextmanager
    def progress(self, label: str) -> Iterator[None]:
        """Show what is done behind `label`; of one batch nothing, which costs nothing."""
        if len(self.plan) <= 1:
            yield
            return
        with ProgressBar(label, len(self.sentences) - len(self.values), "text") as bar:
            self.advance = bar.advance
            yield

    def keep(self, number: int, values: Sequence) -> None:
        pairs = zip(self.plan[number], values, strict=True)
        new = {i: value for i, value in pairs if i not in self.values}
        self.values |= new
        self.cache.put((self.sentences[i], value) for i, value in new.items())
        self.advance(len(new))


def sum_batches(
    work: list[list], scorer: Scorer, computing: Computing
) -> Iterator[tuple[int, list[float]]]:
    """Return pairs (number of a batch, sums of its log-probabilities), computed here or by `nj`."""
    if not work:
        return iter(())
    forks = can_fork() and scorer.signature.get("device", "cpu") == "cpu"
    asked, remedy = computing.nj, REMEDY
    in_turn = scorer.rows and not scorer.left_to_right  # of trees, threads cost less
    torch = sys.modules.get("torch")  # which n-grams do without
    if asked == 1 and forks and in_turn and torch and current().verb in FORKED:
        asked, remedy = torch.get_num_threads(), "give fewer threads (a lower OMP_NUM_THREADS)"
    processes = count_processes(work, scorer, asked, forks) if asked > 1 else 1
    if processes <= 1:
        return enumerate(map(sum_values, run_batches(scorer, work, scorer.log_probs)))
    remedy = f"{remedy} or smaller batches (--rows)"
    own = OwnScorer(scorer)
    return as_completed(sum_batch, work, processes, own, remedy=remedy, forks=forks)


def sum_batch(scorer: Scorer, batch: list) -> list[float]:
    """Return one log-probability a sentence."""
    return sum_values(*run_batches(scorer, [batch], scorer.log_probs))


def sum_values(scores: Sequence[np.ndarray]) -> list[float]:
    """Return the sum of each sentence's token log-probabilities."""
    return [float(values.sum()) for values in scores]


def count_processes(work: list[list], scorer: Scorer, asked: int, forks: bool) -> int:
    """Return the number of processes that this work is worth, at most as many as are asked for."""
    rows = sum(scorer.cost(sentence) for batch in work for sentence in batch)
    worth = rows // (WORTH_A_FORK if forks else WORTH_A_PROCESS)
    return max(1, min(asked, len(work), worth))


class OwnScorer:
    """The scorer of a worker process, with one thread a batch: of the parent in a fork, else
    loaded. UserError where that is another one.
    """

    def __init__(self, scorer: Scorer):
        self.scorer, self.reload = scorer, scorer.reload
        self.spec, self.signature = scorer.spec, scorer.signature

    def __getstate__(self):
        return {**vars(self), "scorer": None}

    def __call__(self) -> Scorer:
        scorer = self.scorer or self.reload()
        if torch := sys.modules.get("torch"):  # which n-grams do without
            torch.set_num_threads(1)
        if scorer.signature != self.signature:
            changed = [
                f"{name} {scorer.signature.get(name)!r} for {value!r}"
                for name, value in self.signature.items()
                if scorer.signature.get(name) != value
            ]
            raise UserError(
                f"{self.spec.lm}: scores otherwise here than where the command was given"
                f" ({', '.join(changed) or 'more is said of it'}); give --device and --precision,"
                " and let the model be while it scores"
            )
        return scorer


def refuse_not_finite(values, sentences, lm: str) -> None:
    """Raise UserError for NaN and infinite scores, which would win or lose every comparison."""
    for value, sentence in zip(values, sentences, strict=True):
        if not np.isfinite(value):
            raise UserError(
                f"{lm}: scores {value} for {' '.join(map(str, sentence))[:100]!r}; the model is"
                " damaged, train it again"
            )


def plan_work(
    sentences: Sequence, model, trees: Sequence[TreeBatch], known: Container[int] = ()
) -> list[list[int]]:
    """Plan batches of numbers of sentences: `trees` not all `known`, then all others."""
    plan: list[list[int]] = [tree for tree in trees if not all(i in known for i in tree)]
    grown = {i for tree in trees for i in tree}
    rest = [i for i in range(len(sentences)) if i not in grown and i not in known]
    if not rest:  # whether a model is ragged is tried when it is asked
        return plan
    batches = plan_batches([model.cost(sentences[i]) for i in rest], model.rows, model.ragged)
    return plan + [[rest[i] for i in batch] for batch in batches]


def run_batches(model, work: Sequence[list], ask: Callable[[list], list]) -> Iterator[list]:
    """Return an iterator of what `ask` of `model` answers to each batch of `plan_work`, a list of
    values, in order; on a CPU as many at a time as torch has threads.
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
    """Return `compute`'s values for a batch filled up to `size`, halved until it fits memory; of
    another shape values may differ in their last bits.
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


def score_all(scorer: Scorer, sentences: Sequence) -> Iterator[tuple[list[int], list[np.ndarray]]]:
    """Yield (indices, their token log-probabilities) of distinct `sentences`, batch by batch."""
    plan = plan_work(sentences, scorer, scorer.plan_trees(sentences))
    work = [type(batch)(sentences[i] for i in batch) for batch in plan]
    yield from zip(plan, run_batches(scorer, work, scorer.log_probs), strict=True)
