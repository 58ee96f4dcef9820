"""Streams: every position once, in order, and the state of one step is where the next begins."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from toys import settings

from lmtools.base.errors import UserError
from lmtools.models.lm import LanguageModel
from lmtools.models.settings import Batch
from lmtools.text.corpus import Corpus
from lmtools.text.subword import BOS, EOS
from lmtools.train.parallel import World
from lmtools.train.streams import Streams


@dataclasses.dataclass
class Text:
    """A corpus in memory, in shards of `cut` sentences."""

    sentences: list[list[int]]
    cut: int = 1000

    def __post_init__(self):
        self.offsets = np.cumsum([0, *map(len, self.sentences)])
        self.ids = np.array([i for sentence in self.sentences for i in sentence], dtype=np.uint16)
        self.tokens = len(self.ids)

    @property
    def shards(self):
        return [
            Text(self.sentences[begin : begin + self.cut])
            for begin in range(0, len(self.sentences), self.cut)
        ]

    def __len__(self):
        return len(self.sentences)


class Recorder:
    """A model that says what it was given: its states are the inputs, its loss nothing."""

    def __init__(self):
        self.read, self.trunk = [], self

    def carried(self, inputs, before=None):
        return inputs[..., None].float(), [inputs[:, :1]]

    def head(self, states):
        return states

    def output(self, states, targets):
        self.read.append((states[:, 0].long().tolist(), targets.tolist()))
        return torch.zeros(()), len(targets)


def text(sizes, cut=1000):
    """Sentences of these lengths, all tokens different."""
    return Text([[10 * i + j + 5 for j in range(n)] for i, n in enumerate(sizes)], cut)


texts = st.builds(
    text, st.lists(st.integers(1, 7), min_size=1, max_size=20), st.sampled_from([1, 2, 3, 1000])
)


@given(texts, st.integers(1, 6), st.integers(1, 5), st.sampled_from([None, 3]), st.integers(0, 2))
def test_every_position_once_and_in_order(text, count, unroll, seed, epoch):
    streams = Streams(text, Batch(streams=count, unroll=unroll), seed, World())
    pairs = [pair for s in text.sentences for pair in zip([BOS, *s], [*s, EOS], strict=True)]
    rows, tokens = [[] for _ in range(count)], 0
    for step in range(epoch * streams.per_epoch, (epoch + 1) * streams.per_epoch):
        lm, batch = Recorder(), streams.at(step)
        _, n = streams.loss(lm, batch, None, "cpu")
        inputs, targets = lm.read[0]
        widths = [end - first for first, end in zip(*streams.span(batch), strict=True)]
        assert n == sum(widths) > 0 and max(widths) <= unroll
        for row, width in zip(rows, widths, strict=True):
            row += zip(inputs[:width], targets[:width], strict=True)
            inputs, targets = inputs[width:], targets[width:]
        tokens += streams.tokens(batch)
    read = [pair for row in rows for pair in row]
    start = int(streams.span((epoch, 0))[0][0])
    assert read == pairs[start:] + pairs[:start] and (seed is not None or start == 0)
    assert tokens == text.tokens and max(map(len, rows)) == streams.length


def test_the_starting_point_differs_from_epoch_to_epoch():
    streams = Streams(Text([[5] * 50] * 20), Batch(streams=4, unroll=8), 1, World())
    assert len({int(streams.span((epoch, 0))[0][0]) for epoch in range(8)}) > 5


def lstm(**arch):
    torch.manual_seed(0)
    made = settings(
        "lstm", arch={"layers": 2, "dim": 8, "units": 12, **arch}, batch=Batch(streams=3, unroll=7)
    )
    return LanguageModel(made, 25).eval()


@pytest.mark.parametrize("projection", [0, 5])
def test_steps_are_one_long_pass(tiny, projection):
    """The losses of all steps against a pass over each whole stream at once."""
    lm, corpus = lstm(projection=projection), Corpus.open(tiny / "valid.bin")
    streams = Streams(corpus, lm.settings.batch, None, World())
    with torch.no_grad():
        parts = [
            streams.loss(lm, streams.at(step), None, "cpu") for step in range(streams.per_epoch)
        ]
        total, count = sum(float(loss) for loss, _ in parts), sum(n for _, n in parts)
        whole = 0.0
        for stream in range(3):
            here = np.arange(
                stream * streams.length, min((stream + 1) * streams.length, streams.positions)
            )
            inputs, targets = map(torch.from_numpy, streams.read(here))
            states = lm.trunk.hidden(inputs[None], torch.tensor([len(here)]))[0]
            whole -= float(lm.output.log_prob(lm.trunk.head(states), targets).sum())
    assert count == corpus.tokens + len(corpus) and total == pytest.approx(whole, rel=1e-5)


def test_gradients_stop_at_a_step():
    lm = lstm()
    _, after = lm.trunk.carried(torch.tensor([[5, 6]]))
    streams = Streams(Text([[5, 6, 7]] * 9), lm.settings.batch, None, World())
    streams.loss(lm, streams.at(0), None, "cpu")
    assert after[0].requires_grad and not any(state.requires_grad for state in streams.state)
    assert [tuple(state.shape) for state in streams.state] == [(3, 12)] * 4


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        (
            "causal",
            {},
            (
                r"batch.streams: causal/causal carries no state; .* recurrent model with objective"
                r" causal \(lstm"
            ),
        ),
        (
            "lstm",
            {"objective": "autoencoding"},
            r"batch.streams: lstm/autoencoding carries no state",
        ),
    ],
)
def test_only_models_that_carry_a_state(family, changes, message):
    with pytest.raises(UserError, match=message):
        settings(family, batch=Batch(streams=2, unroll=3), **changes)


def test_sizes_that_do_not_go_together():
    for wrong, message in (
        ({"streams": 2}, "batch.unroll: is the positions a step"),
        (
            {"sentences": 2, "streams": 2, "unroll": 3},
            "either batch.sentences or batch.tokens or batch.streams",
        ),
        ({"streams": 2, "unroll": 0}, "batch.unroll: 0 is too small"),
    ):
        with pytest.raises(UserError, match=message):
            Batch(**wrong)
    two = World()
    two.size = 2
    with pytest.raises(UserError, match=r"batch.streams: 3 cannot be shared by 2 processes"):
        Streams(Text([[5]]), Batch(streams=3, unroll=2), None, two)
