"""Order, levels and trimming against all paths."""

from itertools import pairwise

import numpy as np
import pytest
from lattices import all_paths, named_sums, random_lattice

from lmtools.base.errors import UserError
from lmtools.lattice import order
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
