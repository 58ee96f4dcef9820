"""Sizes of lattices, counted by hand and by all paths."""

import math
import random

import pytest
from lattices import all_paths, random_lattice, words_of

from lmtools.base.errors import UserError
from lmtools.evaluate.edits import align
from lmtools.lattice.density import add_statistics, oracle, paths, statistics
from lmtools.types import Arc, Final, Lattice

SMALL = Lattice.of(
    "u", 4, 0, [Arc(0, 1, "a"), Arc(0, 1, "b"), Arc(0, 1, None), Arc(1, 2, "a"), Arc(0, 3, "c")],
    [Final(1), Final(2)], [0.0, 0.5, 2.0, 9.0]
)  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_number_of_paths(seed):
    lattice = random_lattice(seed)
    assert paths(lattice) == len(all_paths(lattice))


def test_by_hand():
    found = statistics(SMALL, ref=["x", "y"])
    assert (found.states, found.connected, found.arcs, found.word_arcs, found.finals) == (
        4,
        3,
        5,
        4,
        2,
    )
    assert found.vocabulary == {"a", "b", "c"}
    assert (found.arcs_a_second, found.arcs_a_word) == (2.5, 2.0)
    assert found.paths == math.log10(6)


def test_words_of_the_best_path_stand_in_for_the_reference():
    lattice = SMALL.take(
        range(5),
        range(2),
        scores={"am": -1.0 * (SMALL.source == 1)},
        final_scores={"am": -1.0 * (SMALL.finals == 1)},
    )
    assert statistics(lattice, {"am": 1.0, "words": 0.75}).words == 2
    assert statistics(lattice, {"am": 1.0, "words": 0.75}, ref=[]).arcs_a_word is None


def test_without_times_and_words_there_is_no_density():
    plain = statistics(Lattice.of("u", 2, 0, [], [Final(1)]))
    assert (plain.arcs_a_second, plain.arcs_a_word, plain.paths) == (None, None, -math.inf)


def test_a_number_of_paths_beyond_floats():
    arcs = [Arc(s, s + 1, "a") for s in range(1500) for _ in range(10)]
    assert statistics(Lattice.of("u", 1501, 0, arcs, [Final(1500)])).paths == pytest.approx(1500)


def test_together_leaves_out_of_a_density_what_has_none():
    timeless = Lattice.of("v", 2, 0, [Arc(0, 1, "d")], [Final(1)])
    both = add_statistics([statistics(SMALL, ref=["x", "y"]), statistics(timeless)])
    assert (both.lattices, both.arcs, both.vocabulary) == (2, 6, {"a", "b", "c", "d"})
    assert (both.arcs_a_second, both.arcs_a_word) == (2.5, 2.0)


def edits(ref, hyp):
    """The least (errors, missed reference words), by the recurrence over prefixes."""
    row = [(j, 0) for j in range(len(hyp) + 1)]
    for i, word in enumerate(ref, 1):
        last, row = row, [(i, i)]
        for j, other in enumerate(hyp, 1):
            paired = last[j - 1] if word == other else (last[j - 1][0] + 1, last[j - 1][1] + 1)
            row.append(
                min(paired, (last[j][0] + 1, last[j][1] + 1), (row[j - 1][0] + 1, row[j - 1][1]))
            )
    return row[-1]


@pytest.mark.parametrize("seed", range(150))
def test_least_errors_of_all_paths(seed):
    rng = random.Random(seed)
    lattice = random_lattice(rng, epsilons=0.3)
    ref = rng.choices("abcd", k=rng.randint(0, 6))
    expected = min(edits(ref, words) for words, _, _ in all_paths(lattice))
    found = oracle(lattice, ref)
    assert (found.errors, found.substitutions + found.deletions) == expected
    assert found.words == words_of(lattice, found.arcs)
    assert (found.words, found.arcs) in {(words, arcs) for words, arcs, _ in all_paths(lattice)}
    assert edits(ref, found.words) == expected
    assert align(ref, found.words).counts.errors == found.errors
    assert len(ref) - found.deletions + found.insertions == len(found.words)


def test_a_reference_word_of_another_lattice_and_the_empty_one():
    lattice = Lattice.of("u", 2, 0, [Arc(0, 1, "a"), Arc(0, 1, None), Arc(0, 1, "b")], [Final(1)])
    assert oracle(lattice, []).words == ()
    assert oracle(lattice, ["b"]).arcs == (2,)
    assert oracle(lattice, ["x", "y"]).errors == 2


def test_no_path():
    with pytest.raises(UserError, match="no possible path"):
        oracle(Lattice.of("u", 2, 0, [], [Final(1)]), ["a"])
