"""Lattices as columns and as rows."""

import pickle

import numpy as np

from lmtools.types import EMPTY, Arc, Final, Lattice

ARCS = [
    Arc(0, 1, "blue", {"am": -1.0}, {"ali": "3_3"}),
    Arc(0, 1, None, {"lm": -2.0}),
    Arc(1, 2, "finch"),
]
FINALS = [Final(2, {"am": -0.5}), Final(1, {}, {"ali": "4"})]


def test_rows_and_columns():
    lattice = Lattice.of("u", 3, 0, ARCS, FINALS, times=[0, np.nan, 1.5])
    assert lattice.words == ("blue", None, "finch")
    assert lattice.scores["am"].tolist() == [-1, 0, 0] and lattice.scores["lm"].tolist() == [
        0,
        -2,
        0,
    ]
    assert lattice.arcs()[0] == Arc(0, 1, "blue", {"am": -1.0, "lm": 0.0}, {"ali": "3_3"})
    assert lattice.ends()[1] == Final(1, {"am": 0.0, "lm": 0.0}, {"ali": "4"})
    again = Lattice.of("u", 3, 0, lattice.arcs(), lattice.ends(), times=[0, np.nan, 1.5])
    assert again == lattice and lattice != Lattice.of(
        "u", 3, 0, lattice.arcs()[:2], lattice.ends(), times=[0, np.nan, 1.5]
    )


def test_take_repeats_and_reorders():
    lattice = Lattice.of("u", 3, 0, ARCS, FINALS)
    taken = lattice.take([2, 0, 0], [1], source=np.array([1, 0, 0]), states=4)
    assert (
        taken.words == ("finch", "blue", "blue")
        and taken.extra["ali"] == ("", "3_3", "3_3")
        and taken.states == 4
    )
    assert (
        taken.finals.tolist() == [1]
        and taken.final_extra["ali"] == ("4",)
        and taken.scores["am"].tolist() == [0, -1, -1]
    )


def test_empty():
    lattice = Lattice.of("u", 1, 0, [], [])
    assert lattice.arcs() == [] and lattice.ends() == [] and lattice == lattice.take([], [])


def test_values_go_to_other_processes():
    lattice = Lattice.of("u", 3, 0, ARCS, FINALS)
    assert lattice.header is EMPTY
    assert pickle.loads(pickle.dumps([lattice, FINALS])) == [lattice, FINALS]
