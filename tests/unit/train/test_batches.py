"""Batches as a function of lengths, seed and epoch."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmtools.settings import Batch
from lmtools.train.batches import Segments, plan_epoch

lengths = st.lists(st.integers(0, 40), min_size=1, max_size=200).map(np.array)


@given(lengths, st.integers(1, 300), st.integers(0, 3), st.integers(0, 3))
def test_every_sentence_once_and_within_the_budget(lengths, budget, seed, epoch):
    batches = plan_epoch(lengths, Batch(tokens=budget), 2, seed, epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * (lengths[batch].max() + 2) <= budget
    assert len(batches) == len(plan_epoch(lengths, Batch(tokens=budget), 2, seed, epoch + 1))


@given(lengths, st.integers(1, 64))
def test_batches_of_sentences(lengths, size):
    batches = plan_epoch(lengths, Batch(sentences=size), 2, 0, 0)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert sorted(map(len, batches))[1:] == [size] * (len(batches) - 1)


def test_batches_cannot_be_merged():
    """Greedy: the next sentence would not have fitted."""
    lengths = np.random.default_rng(0).integers(1, 30, 500)
    batches = sorted(
        plan_epoch(lengths, Batch(tokens=100), 1, 0, 0),
        key=lambda b: (lengths[b].max(), lengths[b].min(), -len(b)),
    )
    for left, right in itertools.pairwise(batches):
        assert (len(left) + 1) * (lengths[right].min() + 1) > 100


def test_epochs_differ_and_repeat():
    lengths = np.random.default_rng(0).integers(1, 30, 500)
    flat = [
        np.concatenate(plan_epoch(lengths, Batch(tokens=100), 1, 7, epoch)).tolist()
        for epoch in (0, 1, 0)
    ]
    assert flat[0] == flat[2] != flat[1]


class Fake(list):
    """A corpus in memory."""

    @property
    def lengths(self):
        return np.array([len(s) for s in self])


@given(st.lists(st.integers(0, 30), min_size=1, max_size=30), st.integers(1, 9))
def test_long_sentences_are_cut_and_nothing_is_lost(sizes, longest):
    corpus = Fake(np.arange(size) + 100 * i for i, size in enumerate(sizes))
    segments = Segments(corpus, longest)
    pieces = segments.batch(np.arange(len(segments)))
    assert all(
        len(piece) == length <= longest
        for piece, length in zip(pieces, segments.lengths, strict=True)
    )
    assert np.concatenate(pieces).tolist() == np.concatenate(corpus).tolist()
