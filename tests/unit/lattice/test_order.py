"""Order, levels and trimming against all paths."""

import math
from itertools import pairwise

import numpy as np
import pytest
from lattices import all_paths, named_sums, path_score, random_lattice

from lmtools.base.errors import UserError
from lmtools.lattice import order
from lmtools.lattice.forward import backward, forward, posteriors, through
from lmtools.lattice.weights import total
from lmtools.types import Arc, Final, Lattice


@pytest.mark.parametrize("seed", range(100))
def test_order_goes_forward_and_levels_are_longest_ways(seed):
    lattice = random_lattice(seed)
    rank = np.argsort(order.topological(lattice))
    assert sorted(rank) == list(range(lattice.states))
    assert (rank[lattice.source] < rank[lattice.target]).all()
    zeros = dict.fromkeys(lattice.scores, np.zeros(lattice.states))
    everywhere = lattice.take(
        range(len(lattice.words)), [], finals=np.arange(lattice.states), final_scores=zeros
    )
    longest = {}
    for _, arcs, state in all_paths(everywhere):
        longest[state] = max(longest.get(state, 0), len(arcs))
    assert order.levels(lattice).tolist() == [
        longest.get(state, -1) for state in range(lattice.states)
    ]
    assert (order.levels(lattice) >= 0).tolist() == order.reachable(lattice).tolist()


@pytest.mark.parametrize("seed", range(100))
def test_trim_keeps_the_paths_and_only_them(seed):
    lattice = random_lattice(seed)
    trimmed = order.trim(lattice)
    assert trimmed.start == 0
    assert (trimmed.source < trimmed.target).all()
    assert (np.diff(trimmed.source) >= 0).all()
    on_path = {
        lattice.start,
        *(int(lattice.target[arc]) for _, arcs, _ in all_paths(lattice) for arc in arcs),
    }
    assert trimmed.states == len(on_path)
    assert set(np.flatnonzero(order.states_on_paths(lattice)).tolist()) == on_path
    assert len(trimmed.words) == len({arc for _, arcs, _ in all_paths(lattice) for arc in arcs})
    assert ways(trimmed) == ways(lattice)
    assert order.trim(trimmed) == trimmed
    if lattice.times is not None:
        assert set(trimmed.times) <= set(lattice.times)


def ways(lattice):
    """The paths as words, named sums and extras, in no order."""
    return sorted(
        (
            words,
            sorted(named_sums(lattice, arcs, final).items()),
            [[c[arc] for c in lattice.extra.values()] for arc in arcs],
        )
        for words, arcs, final in all_paths(lattice)
    )


def test_numbers_in_order_stay():
    lattice = Lattice.of("u", 4, 0, [Arc(0, 3, "a"), Arc(0, 1, "b"), Arc(1, 3, "c")], [Final(3)])
    assert order.topological(lattice).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("cycle", [[1, 1], [1, 2, 1], [2, 3, 1, 2]])
def test_a_cycle_is_named(cycle):
    arcs = [
        Arc(0, 1, "a"),
        *(Arc(a, b, "b") for a, b in pairwise(cycle)),
        Arc(3, 4, "c"),
        Arc(2, 4, "c"),
    ]
    lattice = Lattice.of("u1", 5, 0, arcs, [Final(4)])
    with pytest.raises(UserError, match=r"^u1: cycle through state \d; ") as raised:
        order.topological(lattice)
    assert int(str(raised.value).split("state ")[1][0]) in cycle


def test_no_path_is_an_error():
    with pytest.raises(UserError, match=r"^u: no possible path"):
        order.trim(Lattice.of("u", 2, 0, [], [Final(1)]))


WEIGHTS = {"am": 1.0, "lm": 0.5, "words": -0.25}


def log_sum(scores):
    """The log of the summed exponentials, by the definition."""
    return (
        math.log(math.fsum(map(math.exp, scores)))
        if any(score > -math.inf for score in scores)
        else -math.inf
    )


@pytest.mark.parametrize("seed", range(150))
def test_sums_over_all_paths(seed):
    lattice = random_lattice(seed, impossible=0.1 if seed % 2 else 0)
    paths = [
        (path_score(lattice, WEIGHTS, arcs, final), arcs, final)
        for _, arcs, final in all_paths(lattice)
    ]
    scores = [score for score, _, _ in paths]
    if max(scores) == -math.inf:
        with pytest.raises(UserError, match="no possible path"):
            posteriors(lattice, WEIGHTS)
        return
    for plus, summed in ((np.maximum, max), (np.logaddexp, log_sum)):
        arcs, finals, everything = through(lattice, WEIGHTS, plus)
        assert everything == pytest.approx(summed(scores), abs=1e-9)
        for arc, value in enumerate(arcs):
            assert value == pytest.approx(
                summed([-math.inf, *(score for score, arcs, _ in paths if arc in arcs)]), abs=1e-9
            )
        for final, value in enumerate(finals):
            assert value == pytest.approx(
                summed([-math.inf, *(score for score, _, end in paths if end == final)]), abs=1e-9
            )


@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
def test_posteriors_sum_to_one_across_every_cut(scale):
    for seed in range(30):
        lattice = random_lattice(seed)
        share, log_total = posteriors(lattice, WEIGHTS, scale)
        weights = [
            math.exp(scale * path_score(lattice, WEIGHTS, arcs, final))
            for _, arcs, final in all_paths(lattice)
        ]
        assert math.exp(log_total) == pytest.approx(sum(weights))
        expected = np.zeros(len(lattice.words))
        for (_, arcs, _), weight in zip(all_paths(lattice), weights, strict=True):
            expected[list(arcs)] += weight / sum(weights)
        assert share == pytest.approx(expected, abs=1e-12)


def test_huge_scores_do_not_overflow():
    lattice = Lattice.of(
        "u",
        2,
        0,
        [Arc(0, 1, "a", {"am": -1e6}), Arc(0, 1, "b", {"am": -1e6 - math.log(3)})],
        [Final(1)],
    )
    share, log_total = posteriors(lattice, {"am": 1.0})
    assert share == pytest.approx([0.75, 0.25])
    assert log_total == pytest.approx(-1e6 + math.log(4 / 3), abs=1e-6)


def test_forward_and_backward_meet_and_skip_unreachable_states():
    rows = [Arc(3, 1, "x", {"am": 5.0}), Arc(1, 0, "a", {"am": -1.0}), Arc(1, 0, "b", {"am": -2.0})]
    lattice = Lattice.of("u", 4, 1, rows, [Final(0), Final(3)])
    arcs, finals = total(lattice, {"am": 1.0})
    assert forward(lattice, arcs).tolist() == [-1, 0, -np.inf, -np.inf]
    assert backward(lattice, arcs, finals).tolist() == [0, -1, -np.inf, -np.inf]


def test_weights():
    lattice = Lattice.of(
        "u",
        2,
        0,
        [Arc(0, 1, "a", {"am": -2.0, "lm": -np.inf}), Arc(0, 1, None, {"am": -3.0})],
        [Final(1, {"lm": -1.0})],
    )
    assert [column.tolist() for column in total(lattice, {"am": 2.0, "words": 0.5})] == [
        [-3.5, -6.0],
        [0.0],
    ]
    assert [column.tolist() for column in total(lattice, {"am": 1.0, "lm": 0.0})] == [
        [-2.0, -3.0],
        [0.0],
    ]
    assert [column.tolist() for column in total(lattice, {"lm": -1.0})] == [[-np.inf, 0.0], [1.0]]
    with pytest.raises(UserError, match=r"^u: no score 'graph' in the lattice; .*: am, lm, words$"):
        total(lattice, {"graph": 1.0})


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_scores_that_are_no_scores(wrong):
    lattice = Lattice.of("u", 2, 0, [Arc(0, 1, "a", {"am": wrong, "lm": -1.0})], [Final(1)])
    with pytest.raises(UserError, match="NaN"):
        total(lattice, {"am": 1.0})
    assert total(lattice, {"am": 0.0, "lm": 1.0})[0].tolist() == [-1.0]


def test_a_column_of_that_name_replaces_the_built_in_words():
    lattice = Lattice.of("u", 2, 0, [Arc(0, 1, "a", {"words": -7.0})], [Final(1, {"words": -1.0})])
    assert [column.tolist() for column in total(lattice, {"words": 1.0})] == [[-7.0], [-1.0]]
