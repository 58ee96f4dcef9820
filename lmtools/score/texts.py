"""Scores of texts: each distinct sentence once, from the cache where it has it, else computed in
batches, here or by several processes.
"""

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from lmtools.base.batching import prepare_distinct
from lmtools.base.computing import Computing
from lmtools.base.context import current
from lmtools.base.errors import UserError
from lmtools.base.log import ProgressBar
from lmtools.base.shards import WHOLE, Shard
from lmtools.base.workers import REMEDY, as_completed, can_fork
from lmtools.score.base import Scorer
from lmtools.score.batches import plan_work, run_batches
from lmtools.score.cache import Cache, cache_directory
from lmtools.score.load import load
from lmtools.score.trees import TreeBatch

WORTH_A_PROCESS = 100_000  # model rows; starting a process takes seconds
WORTH_A_FORK = 10_000  # and a fork of this one milliseconds
FORKED = ("score", "ppl")  # verbs with forks in the place of threads, which wait for each other


@dataclass(frozen=True)
class TextScores:
    """Arrays over texts (N,): log-probability in nats with the end of sentence, tokens it sums
    over, unknown tokens among them.
    """

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
    """Score `texts`, of which a scorer that reads pairs takes pairs; equal texts get equal scores,
    whatever else is in the list (on a CPU, but for rounding where beginnings are shared; see
    lmtools.score.batches).

    `cache`: one that is open, for many calls; else that of `computing` is opened and closed. Of
    another part than `shard` a log-probability is NaN.
    """
    sentences, which = prepare_distinct(texts, scorer.prepare)
    own = None if cache else open_cache(scorer, computing)
    known = contextlib.closing(own) if own else contextlib.nullcontext(cache)
    compute = partial(score_batches, scorer=scorer, computing=computing)
    label, trees = f"score {scorer.spec.lm}", scorer.plan_trees(sentences)
    with known as store:
        if shard.count > 1:
            store = SharedWork(store, plan_work(sentences, scorer, trees), shard)
        values = compute_missing(sentences, scorer, store, compute, label=label, trees=trees)
    columns = (column[which] for column in (np.array(values), *count_scored(scorer, sentences)))
    return TextScores(*columns, kind=scorer.kind, signature=scorer.signature)


class SharedWork:
    """A cache to which what other parts of the work compute is known, as NaN. Parts have whole
    batches, so that all of them have the bits of the whole.
    """

    def __init__(self, cache: Cache, plan: Sequence[Sequence[int]], shard: Shard):
        left = (batch for n, batch in enumerate(plan) if n % shard.count + 1 != shard.number)
        others = itertools.chain.from_iterable(left)
        self.others, self.inner, self.put = dict.fromkeys(others, np.nan), cache, cache.put

    def get(self, sentences: Sequence) -> dict:
        """Return the known values of the sentences by their numbers."""
        return {**self.inner.get(sentences), **self.others}


def open_cache(scorer: Scorer, computing: Computing) -> Cache:
    """Open the cache of the scorer's results; the caller closes it."""
    return Cache(cache_directory(computing.cache), scorer.signature)


def count_scored(scorer: Scorer, sentences: Sequence[tuple]) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of tokens of each sentence with its end, and of unknown ones, (N,) each."""
    unknown = [scorer.unknown(sentence) for sentence in sentences]
    counts = np.array([(len(tokens) + 1, tokens.sum()) for tokens in unknown], dtype=np.int64)
    return tuple(counts.reshape(-1, 2).T)


def compute_missing(
    sentences: Sequence,
    model,
    cache: Cache,
    compute: Callable[[list[list]], Iterator],
    label: str,
    trees: Sequence[TreeBatch] = (),
) -> list:
    """Return a value for each of the distinct `sentences`: the one in `cache`, else that of
    `compute`, which the cache keeps.

    `compute` takes batches of sentences for `model`, a scorer or an encoder, and gives pairs
    (number of the batch, its values) in any order. `label` stands before the progress. Of `trees`,
    numbers of sentences that go through together, one that lacks any value is computed whole: what
    is known changes no bit of the others.
    """
    known = cache.get(sentences)
    plan, values = plan_work(sentences, model, trees, known), dict(known)
    missing = len(sentences) - len(known)
    work = [type(batch)(sentences[i] for i in batch) for batch in plan]
    with show_progress(missing if len(plan) > 1 else 0, label) as advance:
        for number, results in compute(work) if work else ():
            new = {i: v for i, v in zip(plan[number], results, strict=True) if i not in known}
            values |= new
            cache.put((sentences[i], value) for i, value in new.items())
            advance(len(new))
    return [values[i] for i in range(len(sentences))]


@contextlib.contextmanager
def show_progress(total: int, label: str) -> Iterator[Callable[[int], object]]:
    """Yield a function that is given what more of `total` texts is done, and shows it; of none it
    shows nothing, which costs a live program nothing.
    """
    if not total:
        yield lambda more: None
        return
    with ProgressBar(label, total, "text") as progress:
        yield progress.advance


def score_batches(
    work: list[list], scorer: Scorer, computing: Computing
) -> Iterator[tuple[int, list[float]]]:
    """Yield pairs (number of a batch, the sums of its log-probabilities), as they are computed here
    or by `nj` processes; where these may be forks, some verbs have one in the place of each thread.
    """
    forks = can_fork() and scorer.signature.get("device", "cpu") == "cpu"
    asked, remedy = computing.nj, REMEDY
    in_turn = scorer.rows and not scorer.left_to_right  # of trees, threads cost less
    if asked == 1 and forks and in_turn and current().verb in FORKED:
        asked, remedy = count_threads(), "give fewer threads (a lower OMP_NUM_THREADS)"
    processes = count_processes(work, scorer, asked, forks) if asked > 1 else 1
    if processes > 1:
        remedy = f"{remedy} or smaller batches (--rows)"
        own = OwnScorer(scorer, computing)
        done = as_completed(sum_batch, work, processes, own, remedy=remedy, forks=forks)
    else:
        done = enumerate(map(sum_values, run_batches(scorer, work, scorer.log_probs)))
    for number, values in done:
        refuse_not_finite(values, work[number], scorer.spec.lm)
        yield number, values


def sum_batch(scorer: Scorer, batch: list) -> list[float]:
    """Return one log-probability a sentence."""
    (scores,) = run_batches(scorer, [batch], scorer.log_probs)
    return sum_values(scores)


def sum_values(scores: Sequence[np.ndarray]) -> list[float]:
    """Return the sum of each sentence's token log-probabilities."""
    return [float(values.sum()) for values in scores]


def count_threads() -> int:
    """Return the number of threads that torch has; 1 where nothing brought it along."""
    torch = sys.modules.get("torch")
    return torch.get_num_threads() if torch else 1


def count_processes(work: list[list], scorer: Scorer, asked: int, forks: bool) -> int:
    """Return the number of processes that this work is worth, at most as many as are asked for."""
    rows = sum(scorer.cost(sentence) for batch in work for sentence in batch)
    worth = rows // (WORTH_A_FORK if forks else WORTH_A_PROCESS)
    return min(asked, len(work), worth)


class OwnScorer:
    """The scorer of a worker process, in which one thread computes a batch, as everywhere: a fork
    has that of its parent, others load it. UserError where that is another one, as on another kind
    of machine.
    """

    def __init__(self, scorer: Scorer, computing: Computing):
        self.scorer, self.computing = scorer, computing
        self.spec, self.signature = scorer.spec, scorer.signature

    def __getstate__(self):
        return {**vars(self), "scorer": None}

    def __call__(self) -> Scorer:
        scorer = self.scorer or load(self.spec, self.computing)
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
