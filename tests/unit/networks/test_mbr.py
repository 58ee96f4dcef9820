"""Minimum Bayes risk on lattices against all paths."""

import itertools
import math

import numpy as np
import pytest
from lattices import all_paths, path_score, random_lattice
from rapidfuzz.distance import Levenshtein

from lmtools.base.errors import UserError
from lmtools.lattice import best
from lmtools.lattice.forward import sweep
from lmtools.networks import mbr
from lmtools.networks.mbr import align_forward, decode_mbr, prepare
from lmtools.types import Arc, Final, Lattice

WEIGHTS = {"am": 1.0, "lm": 0.5, "words": -0.25}


def expected_edits(lattice, weights, words):
    """The expected edit distance to the paths in the algorithm's approximation (equation 13)."""
    prepared = prepare(lattice, weights, 1.0)
    rows = {word: row for row, word in enumerate(prepared.words)}
    sequence = np.array([rows.get(word, len(rows)) for word in words], dtype=np.int64)
    groups = list(sweep(prepared.lattice.target, prepared.level, lowest=1))
    return align_forward(prepared, sequence, groups)[2]


def risk_of(lattice, scale=1.0):
    """The true expected edit distance of a word sequence, by all paths."""
    paths = [(scale * path_score(lattice, WEIGHTS, a, f), w) for w, a, f in all_paths(lattice)]
    top = max(score for score, _ in paths)
    shares = [(math.exp(score - top), words) for score, words in paths]
    whole = sum(share for share, _ in shares)
    return lambda words: (
        sum(share * Levenshtein.distance(words, other) for share, other in shares) / whole
    )


@pytest.mark.parametrize("seed", range(80))
def test_expected_errors(seed):
    """Slots sum to 1; the words are no worse than the best path by the bound."""
    lattice = random_lattice(seed)
    network, true = decode_mbr(lattice, WEIGHTS), risk_of(lattice)
    for slot in network.slots:
        assert sum(slot.words.values()) == pytest.approx(1, abs=1e-12)
        assert slot.confidence == max(slot.words.values())
    words, top = tuple(network.text.split()), best(lattice, WEIGHTS).words
    bound = expected_edits(lattice, WEIGHTS, words)
    assert true(words) <= bound + 1e-3  # a tie-breaking cost of 1e-5 an insertion
    assert bound <= expected_edits(lattice, WEIGHTS, top) + 1e-3


def test_nearly_always_the_optimum():
    """Of word sequences up to four words none is better than what is found, nearly always."""
    candidates = [w for k in range(5) for w in itertools.product("abc", repeat=k)]
    excess = []
    for seed in range(40):
        lattice = random_lattice(seed, states=6, arcs=10)
        true = risk_of(lattice)
        found = true(tuple(decode_mbr(lattice, WEIGHTS).text.split()))
        excess.append(found - min(map(true, candidates)))
    assert np.mean(np.array(excess) < 1e-6) > 0.85
    assert np.mean(excess) < 0.05


def chain(paths, times=None):
    """A lattice of paths that share no state; (probability, words)."""
    arcs, states = [], 2
    for share, words in paths:
        inner = list(range(states, states + len(words) - 1))
        ways = zip([0, *inner], [*inner, 1], words, strict=True)
        arcs += [Arc(s, t, w, {"am": math.log(share) if s == 0 else 0.0}) for s, t, w in ways]
        states += len(inner)
    return Lattice.of("u", states, 0, arcs, [Final(1)], times=times)


def test_times_are_those_of_arcs():
    arcs = [Arc(0, 1, "a", {"am": 0.0}), Arc(1, 2, "b", {"am": 0.0}), Arc(0, 2, "a", {"am": -1.0})]
    lattice = Lattice.of("u", 3, 0, arcs, [Final(2)], times=[0.0, 0.5, 1.0])
    first, second = decode_mbr(lattice, {"am": 1.0}).slots
    share = 1 / (1 + math.exp(-1))
    assert first.time == pytest.approx((0, 0.5 * share + (1 - share)))
    assert second.time == pytest.approx((0.5, 1.0))


def test_too_large(monkeypatch):
    monkeypatch.setattr(mbr, "MOST", 10)
    with pytest.raises(UserError, match="u: 7 arcs and 3 words are too many; prune the lattice"):
        decode_mbr(chain([(0.5, "abc"), (0.5, "abd")]), {"am": 1.0})
