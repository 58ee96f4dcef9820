"""Every kind of problem is found, and repaired lattices have none."""

import random
from dataclasses import replace

import numpy as np
import pytest
from lattices import WORDS, all_paths, random_lattice

from lmtools.lattice.check import ERROR, HINT, problems, repair
from lmtools.lattice.order import topological, trim
from lmtools.lattice.paths import best
from lmtools.types import Arc, Final, Lattice

END = Final(2)


def chain(*more, finals=(END,), start=0, states=3, times=None):
    """A lattice of the sentence "a b" and more arcs."""
    return Lattice.of(
        "u",
        states,
        start,
        [Arc(0, 1, "a", {"am": -1.0}), Arc(1, 2, "b", {"am": -1.0}), *more],
        finals,
        times,
    )


CASES = {
    "no states": (Lattice.of("u", 0, 0, [], []), ERROR, "the whole lattice"),
    "no start": (chain(start=7), ERROR, "state 7 of 3"),
    "no such state": (chain(Arc(0, 5, "c")), ERROR, "arc 2 (0 -> 5, 'c')"),
    "no final state": (chain(finals=()), ERROR, "the whole lattice"),
    "repeated final state": (chain(finals=(Final(2), Final(2))), ERROR, "state 2"),
    "no path": (chain(finals=(Final(3),), states=4), ERROR, "from state 0 to a final state"),
    "unreachable state": (chain(Arc(3, 1, "c"), states=4), HINT, "state 3"),
    "dead state": (chain(Arc(1, 3, "c"), states=4), HINT, "state 3"),
    "self loop": (chain(Arc(1, 1, None)), ERROR, "arc 2 (1 -> 1, epsilon)"),
    "cycle": (chain(Arc(2, 0, "c")), ERROR, "closed by arc 2 (2 -> 0, 'c')"),
    "NaN score": (chain(Arc(0, 1, "c", {"am": np.nan})), ERROR, "am of arc 2 (0 -> 1, 'c')"),
    "infinite score": (chain(finals=(Final(2, {"lm": np.inf}),)), ERROR, "lm of final state 2"),
    "impossible score": (chain(Arc(0, 1, "c", {"am": -np.inf})), HINT, "am of arc 2 (0 -> 1, 'c')"),
    "empty word": (chain(Arc(0, 1, "")), ERROR, "arc 2 (0 -> 1, '')"),
    "white space in a word": (chain(Arc(0, 1, "c d")), ERROR, "arc 2 (0 -> 1, 'c d')"),
    "time running backwards": (chain(times=[0, 3, 2]), HINT, "arc 1 (1 -> 2, 'b')"),
}


@pytest.mark.parametrize("kind", CASES)
def test_each_kind_is_found_and_repaired(kind):
    lattice, severity, example = CASES[kind]
    found = {problem.kind: problem for problem in problems(lattice)}
    assert (found[kind].count, found[kind].severity, found[kind].example) == (1, severity, example)
    repaired, done = repair(lattice)
    assert done or kind == "time running backwards"
    assert {problem.kind for problem in problems(repaired)} <= {"time running backwards"}
    assert best(repaired, dict.fromkeys(repaired.scores, 1.0)).words in {
        ("a", "b"),
        (),
        ("b",),
        ("c_d", "b"),
    }


def test_nothing_is_wrong_with_a_good_lattice():
    assert problems(chain(times=[0, np.nan, 2])) == []
    assert repair(chain()) == (chain(), [])


@pytest.mark.parametrize("seed", range(60))
def test_valid_lattices_are_only_trimmed(seed):
    lattice = random_lattice(seed)
    assert {problem.severity for problem in problems(lattice)} <= {HINT}
    assert repair(lattice)[0] == trim(lattice)


@pytest.mark.parametrize("seed", range(200))
def test_whatever_comes_is_repaired(seed):
    rng = random.Random(seed)
    lattice = broken(rng)
    repaired, done = repair(lattice)
    left = problems(repaired)
    assert {problem.kind for problem in left} <= {"time running backwards"}, left
    assert len(topological(repaired)) == repaired.states
    assert all_paths(repaired)
    assert repaired.scores.keys() == lattice.scores.keys()
    if any(problem.severity == ERROR for problem in problems(lattice)):
        assert done


def broken(rng):
    """A lattice of arcs in any direction, also out of it, with any score, word and time."""
    states = rng.randint(0, 6)

    def score():
        return {"am": rng.choice([-1.0, 0.0, -2.5, -1.0, 0.0, np.nan, np.inf, -np.inf])}

    words = [*WORDS, None, "", " ", "x y"]
    rows = [
        Arc(rng.randint(-1, 6), rng.randint(-1, 6), rng.choice(words), score())
        for _ in range(rng.randint(0, 20))
    ]
    finals = [Final(rng.randint(-1, 6), score()) for _ in range(rng.randint(0, 4))]
    times = [rng.random() for _ in range(states)] if rng.random() < 0.5 else None
    return replace(
        Lattice.of("u", states, rng.randint(-1, 6), rows, finals, times), header={"kept": "yes"}
    )


def test_what_was_done_is_said():
    arcs = [Arc(0, 1, "a", {"am": np.nan}), Arc(0, 1, " "), Arc(1, 0, "b"), Arc(2, 1, "b")]
    lattice = Lattice.of("u", 3, 0, arcs, [Final(1), Final(1)])
    repaired, done = repair(lattice)
    assert done == [
        "took white space out of 1 word", "dropped 1 arc with impossible scores",
        "dropped 1 final state given twice",
        "cut 1 arc that closed cycles", "dropped 1 state and 1 arc that are on no path",
    ]  # fmt: skip
    assert (repaired.states, repaired.words) == (2, (None,))


def test_cycles_are_cut_as_seen_from_the_start():
    arcs = [Arc(2, 1, "a"), Arc(1, 0, "b"), Arc(0, 1, "c"), Arc(0, 3, "d")]
    assert repair(Lattice.of("u", 4, 2, arcs, [Final(3)]))[0].words == ("a", "b", "d")


def test_repair_cuts_cycles_but_no_way_to_a_state():
    ring = Lattice.of(
        "u", 4, 0, [Arc(0, 1, "a"), Arc(1, 2, "b"), Arc(2, 1, "c"), Arc(2, 3, "d")], [Final(3)]
    )
    repaired, done = repair(ring)
    assert repaired.words == ("a", "b", "d")
    assert done == ["cut 1 arc that closed cycles"]
