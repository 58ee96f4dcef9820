"""Progressive alignment and what is asked of networks, against brute force."""

import itertools
import random

import numpy as np
import pytest
from rapidfuzz.distance import Levenshtein

from lmtools.base.errors import UserError
from lmtools.lattice.paths import nbest
from lmtools.networks import confusion
from lmtools.networks.confusion import ONE, NetworkBuilder, align, as_lattice, share_out
from lmtools.types import NO_WORD


def random_list(seed, hyps=5, words=4):
    rng = random.Random(seed)
    texts = [
        tuple(rng.choices("abc", k=rng.randint(0, words))) for _ in range(rng.randint(1, hyps))
    ]
    return texts, np.random.default_rng(seed).dirichlet(np.ones(len(texts)))


def build(texts, shares):
    builder = NetworkBuilder()
    for words, share in zip(texts, share_out(shares).tolist(), strict=True):
        builder.add_words(words, share)
    return builder.finish("u")


def alignments(units, slots):
    """Every alignment: slots that rise, or None."""
    for steps in itertools.product([None, *range(slots)], repeat=units):
        placed = [step for step in steps if step is not None]
        if placed == sorted(set(placed)):
            yield list(steps)


@pytest.mark.parametrize("seed", range(60))
def test_alignment_gains_most(seed):
    rng = np.random.default_rng(seed)
    units, slots = rng.integers(0, 5, size=2)
    gains, losses = rng.integers(-3, 6, size=(units, slots)), rng.integers(0, 4, size=units)

    def value(steps):
        return sum(
            -losses[unit] if step is None else gains[unit, step] for unit, step in enumerate(steps)
        )

    steps = align(gains, losses)
    assert steps in list(alignments(units, slots))
    assert value(steps) == max(map(value, alignments(units, slots)))


def expected_errors(network, path):
    """Expected errors of a path, a word or NO_WORD a slot, if each slot is right or wrong alone."""
    slots = zip(network.slots, path, strict=True)
    return sum(1 - slot.words.get(word, 0.0) for slot, word in slots)


@pytest.mark.parametrize("seed", range(100))
def test_posteriors_and_consensus(seed):
    """Posteriors of a slot sum to 1, and no path of the network has fewer expected errors."""
    texts, shares = random_list(seed)
    network = build(texts, shares)
    for slot in network.slots:
        assert sum(slot.words.values()) == 1
        assert slot.confidence == slot.words[slot.chosen] == max(slot.words.values())
    errors = {
        path: expected_errors(network, path)
        for path in itertools.product(*(slot.words for slot in network.slots))
    }
    chosen = [slot.chosen for slot in network.slots]
    assert expected_errors(network, chosen) == pytest.approx(min(errors.values()))
    for path, bound in errors.items():  # slots align, as any alignment, no better than the best
        words = [word for word in path if word]
        true = sum(
            share * Levenshtein.distance(words, text)
            for share, text in zip(shares, texts, strict=True)
        )
        assert true <= bound + 1e-6
    for text in texts:  # every hypothesis is a path
        assert text in {tuple(filter(None, path)) for path in errors}


def test_order_of_equal_words():
    """A word stands before none, and the earlier of equals first."""
    network = build([("a",), ("b",)], [0.5, 0.5])
    assert (network.text, list(network.slots[0].words)) == ("a", ["a", "b"])
    network = build([("a",), ()], [0.5, 0.5])
    assert (network.text, list(network.slots[0].words)) == ("a", ["a", NO_WORD])


def test_times_are_averaged():
    builder = NetworkBuilder()
    builder.add_words(["a", "b"], ONE // 4 * 3, [(0.0, 0.5), (0.5, 1.0)])
    builder.add_words(["a", "c"], ONE // 8, [(0.4, 0.9), (0.9, 1.0)])
    builder.add_words(["a", "b"], ONE // 8)
    first, second = builder.finish("u").slots
    assert first.time == pytest.approx((0.4 / 7, (0.5 * 6 + 0.9) / 7))
    assert second.time == (0.5, 1.0)


def test_lattice_of_a_network():
    network = build([("a", "b"), ("a",)], [0.75, 0.25])
    paths = nbest(as_lattice(network), {"am": 1.0}, 9)
    assert [path.words for path in paths] == [("a", "b"), ("a",)]
    assert np.exp([path.score for path in paths]).tolist() == pytest.approx([0.75, 0.25])


def test_too_long(monkeypatch):
    monkeypatch.setattr(confusion, "MOST", 100)
    with pytest.raises(UserError, match="20 words to align with 20 slots are too many"):
        build([("a",) * 20, ("b",) * 20], [0.5, 0.5])
