"""Batches as a function of lengths, seed and epoch."""

import itertools
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmtools.models.settings import Batch
from lmtools.train.batches import Segments, Sentences, plan_epoch
from lmtools.train.parallel import World

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

    path = Path("fake")

    @property
    def lengths(self):
        return np.array([len(s) for s in self])


class Shards(list):
    """A corpus of several."""

    path = Path("shards")

    def __init__(self, shards):
        super().__init__(itertools.chain.from_iterable(shards))
        self.shards = [Fake(shard) for shard in shards]


class Lm:
    """What batches are told of a model."""

    longest = 9

    class objective:
        boundary, pairs = 2, False
        widths = staticmethod(lambda corpus: corpus.lengths)


shards = st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=12), min_size=1, max_size=6)


@given(shards, st.integers(11, 60), st.integers(0, 3))
def test_each_epoch_reads_each_shard_once_and_whole(sizes, budget, seed):
    """Shard by shard, in another order an epoch; any step is that of a whole run."""
    number = itertools.count()
    text = Shards([[np.full(n, next(number)) for n in shard] for shard in sizes])

    def sentences():
        return Sentences(text, Batch(tokens=budget), seed, World(), Lm)

    once, orders = sentences(), set()
    for epoch in range(4):
        order, read = [], []
        for step in range(epoch * once.per_epoch, (epoch + 1) * once.per_epoch):
            segments, indices = once.at(step)
            if not order or order[-1] is not segments.corpus:
                order.append(segments.corpus)
            read += [
                (segments.sentence[i], segments.begin[i], id(segments.corpus)) for i in indices
            ]
            again = sentences().at(step) if step % 5 == 0 else (segments, indices)
            assert again[0].corpus is segments.corpus and again[1].tolist() == indices.tolist()
        assert len(order) == len(sizes) and len(set(read)) == len(read)
        assert len(read) == sum(max(1, -(-n // 9)) for shard in sizes for n in shard)
        orders.add(tuple(map(id, order)))
    assert len(sizes) < 4 or len(orders) > 1


def test_one_file_is_planned_as_ever():
    """The order that published trainings had."""
    text = Shards([[np.arange(n % 7) for n in range(50)]])
    made = Sentences(text, Batch(tokens=40), 3, World(), Lm)
    plan = plan_epoch(text.shards[0].lengths, Batch(tokens=40), 2, 3, 1)
    found = [made.at(made.per_epoch + n).indices.tolist() for n in range(made.per_epoch)]
    assert found == [batch.tolist() for batch in plan]


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
