"""Linear interpolation of n-gram models, sum_i w_i p_i(word | those before), as one static model.

The weights are found by expectation maximisation, as SRILM's compute-best-mix finds them (Jelinek
and Mercer 1980).
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from lmtools.base.errors import UserError
from lmtools.ngram.backoff import SHIFT, UNKNOWN, WORD, BackoffModel, Level, ones, pack
from lmtools.ngram.disk import LevelFile
from lmtools.ngram.sentences import BOS, EOS

STEPS, CHANGE = 10_000, 1e-9  # of expectation maximisation: at most, and of a weight when it ends


def interpolate(models: Sequence[BackoffModel], weights: np.ndarray, folder=None) -> BackoffModel:
    """Return the model of all n-grams of `models`, over the same ids, each with the weighted mean
    of their probabilities, and back-off weights for sums of 1; in unnamed files of `folder`.
    """
    order = max(model.order for model in models)
    parts = [MixedModel(model, order) for model in models]
    prob = sum(weight * part.probs for weight, part in zip(weights, parts, strict=True))
    result = BackoffModel([Level(np.arange(len(prob)), prob, ones(len(prob)))])
    for n in range(2, order + 1):
        level, size = LevelFile(folder, ["key", "prob", "suffix"]), 0
        for blocks in align_blocks([part.blocks(n) for part in parts]):
            key = np.concatenate([block[0] for block in blocks])
            key.sort(kind="stable")  # which merges what is sorted; np.unique would hash it
            key = key[np.diff(key, prepend=-1) > 0]
            places = [np.searchsorted(key, block[0]) for block in blocks]
            suffix = np.full(len(key), UNKNOWN, dtype=np.int32)  # as far as the models know it
            for at, block in zip(places, blocks, strict=True):
                suffix[at] = np.maximum(suffix[at], block[3])
            shorter = result.shorten(n, key, suffix)
            rows = zip(weights, parts, blocks, places, strict=True)
            prob = sum(
                weight * part.find_probabilities(block, at, (key, shorter, size), result)
                for weight, part, block, at in rows
            )
            size += len(key)
            level.append(key=key, prob=prob, suffix=shorter)
        if n < order:
            for part in parts:
                part.advance()
        result.levels.append(level.map())
    result.set_backoffs()
    return result


class MixedModel:
    """A model as part of a mixture so far: `probs`, `backoffs` (N,) it gives the mixture's n-grams
    of the last order; `places`, its own n-grams among them.
    """

    def __init__(self, model: BackoffModel, last: int):
        self.model, self.last = model, last
        unigrams = model.levels[0]
        self.probs, self.backoffs = unigrams.prob, unigrams.backoff
        self.places = np.arange(len(unigrams))
        self.found: list[tuple[np.ndarray, ...]] = []

    def blocks(self, n: int) -> Iterator[tuple[np.ndarray, ...]]:
        """Yield blocks of its n-grams of an order: keys in the mixture, probabilities, back-off
        weights, suffixes in the mixture (UNKNOWN where it has none).
        """
        if n > self.model.order:
            return
        level, start = self.model.levels[n - 1], 0
        for key, prob, suffix in level.blocks():
            rows = slice(start, start + len(key))
            shorter = np.full(len(suffix), UNKNOWN, dtype=np.int32)
            shorter[suffix >= 0] = self.places[suffix[suffix >= 0]]
            yield pack(self.places[key >> SHIFT], key & WORD), prob, level.backoff[rows], shorter
            start = rows.stop

    def find_probabilities(
        self,
        block: tuple[np.ndarray, ...],
        at: np.ndarray,
        rows: tuple[np.ndarray, np.ndarray, int],
        mixture: BackoffModel,
    ) -> np.ndarray:
        """Return (R,) its probabilities of n-grams of the mixture: `rows` are their keys, what
        BackoffModel.shorten gives of these, and the first one's index; `block` those of its own
        among them, which are `at` these places.
        """
        (key, shorter, start), (_, prob, backoff, _) = rows, block
        n = mixture.order + 1
        probs = self.backoffs[key >> SHIFT] * self.probs[shorter]
        if len(others := np.flatnonzero(shorter < 0)):
            words = mixture.spell_keys(n, key[others])
            probs[others] = self.model.query(words, n - 2)
        probs[at] = prob
        if n < self.last:
            backoffs = np.ones(len(key))
            backoffs[at] = backoff
            self.found.append((probs, backoffs, at + start))
        return probs

    def advance(self) -> None:
        self.probs, self.backoffs, self.places = map(np.concatenate, zip(*self.found, strict=True))
        self.found = []


def align_blocks(streams: Sequence[Iterator]) -> Iterator[list[tuple[np.ndarray, ...]]]:
    """Yield blocks of several levels cut alike: each holds all n-grams of its contexts."""
    held = [next(stream, None) for stream in streams]
    types = np.int64, np.float64, np.float64, np.int32
    nothing = tuple(np.empty(0, dtype=dtype) for dtype in types)
    while not all(block is None for block in held):
        last = min(block[0][-1] >> SHIFT for block in held if block is not None)
        taken = []
        for number, block in enumerate(held):
            stop = 0 if block is None else int(np.searchsorted(block[0], (last + 1) << SHIFT))
            taken.append(tuple(column[:stop] for column in block) if stop else nothing)
            if block is not None and stop == len(block[0]):
                held[number] = next(streams[number], None)
            elif stop:
                held[number] = tuple(column[stop:] for column in block)
        yield taken


def token_probabilities(
    models: Sequence[BackoffModel], sentences: Iterable[Sequence[int]]
) -> np.ndarray:
    """Return (P, N) probabilities of the tokens and ends of `sentences` under each model."""
    ids = np.array([i for sentence in sentences for i in (BOS, *sentence, EOS)], dtype=np.int64)
    at = np.arange(len(ids))
    place = at - np.maximum.accumulate(np.where(ids == BOS, at, 0))  # in the sentence, <s> is 0
    order = max(model.order for model in models)
    probs = np.zeros((len(models), len(ids)))
    for n in range(2, order + 1) if order > 1 else (2,):
        ends = np.flatnonzero(place + 1 >= n if n == max(order, 2) else place + 1 == n)
        words = ids[ends[:, None] + np.arange(1 - n, 1)]
        for row, model in zip(probs, models, strict=True):
            row[ends] = model.query(words)
    return probs[:, ids != BOS]


def complete_weights(weights: Sequence[float], lms: Sequence[str]) -> np.ndarray:
    """Return weights (P,) of `lms`, the last maybe the rest of 1; UserError for other sums."""
    completed = np.array(weights, dtype=np.float64)
    if len(completed) == len(lms) - 1:
        completed = np.append(completed, 1 - completed.sum())
    if len(completed) != len(lms) or (completed < 0).any() or abs(completed.sum() - 1) > 1e-6:
        given = " ".join(f"{weight:g}" for weight in weights)
        raise UserError(
            f"--mix {given}: give a weight from 0 for each of {len(lms)} models, 1 in sum (the"
            " last may be left out)"
        )
    return completed


def tune_mixture(logs: np.ndarray) -> np.ndarray:
    """Return the weights (P,) under which tokens of log-probabilities `logs` (P, N) are most
    probable, by expectation maximisation from equal weights; there is one maximum only.
    """
    relative = np.exp(logs - logs.max(0))  # (P, N); factors of a token do not count
    weights = np.full(len(logs), 1 / len(logs))
    for _ in range(STEPS):
        shares = weights[:, None] * relative
        updated = (shares / shares.sum(0)).mean(1)
        change = np.abs(updated - weights).max()
        weights = updated
        if change < CHANGE:
            break
    return weights / weights.sum()
