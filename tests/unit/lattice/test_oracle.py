"""The oracle path against the edit distance of every path."""

import random

import pytest
from lattices import all_paths, random_lattice, words_of

from lmtools.base.errors import UserError
from lmtools.evaluate.edits import align
from lmtools.lattice.density import oracle
from lmtools.types import Arc, Final, Lattice


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
