"""The exact n best sentences against all paths."""

import math
import random

import pytest
from lattices import all_paths, named_sums, path_score, random_lattice, sentences

from lmtools.base.errors import UserError
from lmtools.lattice.paths import as_nbest, best, nbest
from lmtools.types import Arc, Final, Lattice

WEIGHTS = {"am": 1.0, "lm": 0.5, "words": -0.25}


@pytest.mark.parametrize("seed", range(200))
def test_all_sentences_come_in_order_with_their_best_path(seed):
    lattice = random_lattice(
        seed,
        words="ab",
        epsilons=0.4 if seed % 4 == 0 else 0.2,
        impossible=0.1 if seed % 3 == 0 else 0,
    )
    expected = sentences(lattice, WEIGHTS)
    if not expected:
        with pytest.raises(UserError, match="no possible path"):
            nbest(lattice, WEIGHTS, 1)
        return
    paths = nbest(lattice, WEIGHTS, 1000)
    assert len(paths) == len(expected)
    real = set(all_paths(lattice))
    for path in paths:
        assert (path.words, path.arcs, path.final) in real
        assert path.score == pytest.approx(expected[path.words], abs=1e-9)
        assert path.score == pytest.approx(
            path_score(lattice, WEIGHTS, path.arcs, path.final), abs=1e-9
        )
    scores = [path.score for path in paths]
    assert scores == sorted(scores, reverse=True)
    assert len({path.words for path in paths}) == len(paths)
    for n in (1, 2, 5):
        assert nbest(lattice, WEIGHTS, n) == paths[:n]
    assert best(lattice, WEIGHTS) == paths[0]


def test_a_score_of_weight_zero_is_not_looked_at():
    arcs = [Arc(0, 1, "a", {"am": -2.0, "lm": -math.inf}), Arc(0, 1, "b", {"am": -3.0})]
    lattice = Lattice.of("u", 2, 0, arcs, [Final(1)])
    assert [path.words for path in nbest(lattice, {"am": 1.0, "lm": 0.0}, 5)] == [("a",), ("b",)]
    assert [path.words for path in nbest(lattice, {"am": 1.0, "lm": 0.1}, 5)] == [("b",)]


def test_as_nbest_names_the_sums():
    for seed in range(30):
        lattice = random_lattice(seed)
        listed = as_nbest(lattice, WEIGHTS, 3, ref="a b")
        assert (listed.utt, listed.ref) == (lattice.utt, "a b")
        for hyp, path in zip(listed.hyps, nbest(lattice, WEIGHTS, 3), strict=True):
            assert hyp.text == " ".join(path.words)
            assert hyp.scores == named_sums(lattice, path.arcs, path.final)


def test_a_lattice_of_an_empty_line():
    listed = as_nbest(Lattice.of("u", 1, 0, [], [Final(0)]), WEIGHTS, 5)
    assert [(hyp.text, hyp.scores) for hyp in listed.hyps] == [("", {"am": 0.0, "lm": 0.0})]


def test_many_ways_to_the_same_words_are_one_sentence():
    """2^60 paths, one sentence: only a search over sets of states ends."""
    rows = [
        arc
        for s in range(60)
        for arc in (Arc(s, s + 1, "a", {"am": -1.0}), Arc(s, s + 1, "a", {"am": -1.0}))
    ]
    paths = nbest(Lattice.of("u", 61, 0, rows, [Final(60)]), {"am": 1.0}, 10)
    assert [(path.words, path.score) for path in paths] == [(("a",) * 60, -60.0)]


def test_shorter_lists_begin_longer_ones():
    """Ties too, in lattices large enough that the search leaves out most arcs."""
    for seed in range(20):
        rng = random.Random(seed)
        steps = [(s, min(s + rng.choice((1, 1, 2)), 30)) for s in range(30) for _ in range(6)]
        rows = [
            Arc(*step, rng.choice([*"abc", None]), {"am": -rng.randrange(9) / 10}) for step in steps
        ]
        lattice = Lattice.of(
            "u", 31, 0, [*rows, *(Arc(s, s + 1, "z", {"am": -9.0}) for s in range(30))], [Final(30)]
        )
        longest = nbest(lattice, {"am": 1.0}, 200)
        assert len({path.words for path in longest}) == 200
        for n in (1, 3, 20):
            assert nbest(lattice, {"am": 1.0}, n) == longest[:n]


def test_arcs_left_out_at_first_come_back():
    """The best "x y" is an arc worse than 40 others; what is left says it worse."""
    pairs = [
        Arc(0, 1, "a", {"am": 0.0}),
        Arc(0, 1, "x", {"am": -1.0}),
        Arc(1, 2, "b", {"am": 0.0}),
        Arc(1, 2, "y", {"am": -1.0}),
    ]
    detour = [Arc(0, 3, "x", {"am": -1.8}), Arc(3, 2, "y", {"am": 0.0})]
    lattice = Lattice.of(
        "u", 4, 0, [*pairs, *detour, *[Arc(0, 1, "a", {"am": -1.5})] * 40], [Final(2)]
    )
    assert [path.score for path in nbest(lattice, {"am": 1.0}, 4)] == [0.0, -1.0, -1.0, -1.8]


def test_many_epsilons():
    """Every state leads to every later one without a word."""
    rows = [Arc(s, t, None, {"am": -1.0 - t + s}) for s in range(300) for t in range(s + 1, 300)]
    words = [Arc(s, s + 1, f"w{s}", {"am": -0.5}) for s in range(299)]
    paths = nbest(Lattice.of("u", 300, 0, [*rows, *words], [Final(299)]), {"am": 1.0}, 3)
    assert [round(path.score, 6) for path in paths] == [-149.5, -151.0, -151.0]
    assert paths[0].words == tuple(f"w{s}" for s in range(299))


def test_huge_scores_that_cancel():
    arcs = [
        Arc(0, 1, "a", {"am": 1e12}),
        Arc(1, 2, "b", {"am": 0.1}),
        Arc(1, 2, "c", {"am": 0.3}),
        Arc(2, 3, "d", {"am": -1e12}),
    ]
    paths = nbest(Lattice.of("u", 4, 0, arcs, [Final(3)]), {"am": 1.0}, 5)
    assert {path.words for path in paths} == {("a", "b", "d"), ("a", "c", "d")}
    assert [path.score for path in paths] == pytest.approx([0.2, 0.2], abs=0.11)


def test_ties_of_exponentially_many_sentences():
    rows = [Arc(s, s + 1, word, {"am": -0.1}) for s in range(60) for word in "ab"]
    lattice = Lattice.of("u", 61, 0, rows, [Final(60)])
    paths = nbest(lattice, {"am": 1.0}, 100)
    assert len({path.words for path in paths}) == 100
    assert {round(path.score, 9) for path in paths} == {-6.0}
