"""Determinised lattices against all paths of the original."""

import math
import sys

import numpy as np
import pytest
from lattices import all_paths, named_sums, path_score, random_lattice, sentences

from lmtools.base.errors import UserError
from lmtools.lattice.determinise import determinise
from lmtools.lattice.order import unroll_chain
from lmtools.types import Arc, Final, Lattice

WEIGHTS = {"am": 1.0, "lm": 0.5, "words": -0.25}


def sums_of_best(lattice, weights):
    """For each word sequence the named sums that its best paths have."""
    best, found = sentences(lattice, weights), {}
    for words, arcs, final in all_paths(lattice):
        if words in best and path_score(lattice, weights, arcs, final) >= best[words] - 1e-9:
            found.setdefault(words, []).append(named_sums(lattice, arcs, final))
    return found


def same(left, right):
    """Whether named sums agree but for rounding."""
    return left.keys() == right.keys() and all(
        left[name] == right[name] or abs(left[name] - right[name]) < 1e-6 for name in left
    )


@pytest.mark.parametrize("weights", [WEIGHTS, {"am": 1.0, "lm": 0.0}])
@pytest.mark.parametrize("impossible", [0.0, 0.1])
def test_sentences_keep_their_best_scores_by_name(weights, impossible):
    for seed in range(100):
        lattice = random_lattice(seed, words="ab", epsilons=0.4, impossible=impossible)
        expected = sentences(lattice, weights)
        if not expected:
            with pytest.raises(UserError, match="no possible path"):
                determinise(lattice, weights)
            continue
        result = determinise(lattice, weights)
        assert None not in result.words
        assert (result.source < result.target).all()
        got = sentences(result, weights)
        assert got == {words: pytest.approx(score, abs=1e-5) for words, score in expected.items()}
        possible = sums_of_best(lattice, weights)
        for words, sums in sums_of_best(result, weights).items():
            assert any(same(each, other) for each in sums for other in possible[words])


def test_a_chain_of_epsilons_longer_than_the_stack():
    n = sys.getrecursionlimit() + 500
    arcs = [*(Arc(s, s + 1, None, {"am": -1.0}) for s in range(n)), Arc(n, n + 1, "a")]
    result = determinise(Lattice.of("u", n + 2, 0, arcs, [Final(n + 1)]), {"am": 1.0})
    assert (result.words, result.scores["am"].tolist()) == (("a",), [-n])


def test_unrolled():
    assert unroll_chain(None) == []
    assert unroll_chain(((((None, 1), (None, 2)), ((None, 3), 4)), None)) == [1, 2, 3, 4]


def test_determinised_has_one_arc_a_word():
    for seed in range(100):
        result = determinise(random_lattice(seed, words="ab"), WEIGHTS)
        pairs = list(zip(result.source.tolist(), result.words, strict=True))
        assert len(set(pairs)) == len(pairs)
        assert len(all_paths(result)) == len({words for words, _, _ in all_paths(result)})


def test_determinising_shares_what_follows():
    """Words in any of three pronunciations each: states stay one a place, although there are 3^40
    paths.
    """
    rows = [
        Arc(s, s + 1, word, {"am": -float(k)}) for s in range(40) for word in "ab" for k in range(3)
    ]
    result = determinise(Lattice.of("u", 41, 0, rows, [Final(40)], np.arange(41.0)), {"am": 1.0})
    assert (result.states, len(result.words)) == (41, 80)
    assert result.times.tolist() == list(range(41))


def test_rounding_does_not_keep_states_apart():
    """Either word leads to both states of a place, 0.1 apart but for the last digits."""
    rows = []
    for s in range(0, 40, 2):
        for word, cost in (("a", 0.3), ("b", 1.7 + s / 7)):
            ways = [(s, s + 2, cost), (s, s + 3, cost + 0.1), (s + 1, s + 3, cost)]
            rows += [Arc(source, target, word, {"am": -cost}) for source, target, cost in ways]
    assert (
        determinise(Lattice.of("u", 42, 0, rows, [Final(40), Final(41)]), {"am": 1.0}).states == 21
    )


def test_too_many_states_are_refused():
    """Where two ways differ by the score of each of 12 words that they share, no two prefixes are
    the same.
    """
    rows = [
        arc
        for s in range(12)
        for word, score in (("a", -1.0), ("b", -(2.0 ** -(s + 1))))
        for arc in (Arc(2 * s, 2 * s + 2, word, {"am": score}), Arc(2 * s + 1, 2 * s + 3, word))
    ]
    rows = [*rows, Arc(26, 0, "x"), Arc(26, 1, "x"), Arc(24, 27, "y"), Arc(25, 27, "z")]
    lattice = Lattice.of("u7", 28, 26, rows, [Final(27)])
    with pytest.raises(UserError, match=r"^u7: more than 500 states .*; prune it"):
        determinise(lattice, {"am": 1.0}, states=500)
    assert math.log2(determinise(lattice, {"am": 1.0}).states) > 12
