"""What pruning keeps and drops, against all paths."""

import math

import numpy as np
import pytest
from lattices import all_paths, named_sums, path_score, random_lattice, sentences

from lmtools.base.errors import UserError
from lmtools.lattice.forward import prune
from lmtools.lattice.paths import best
from lmtools.types import Arc, Final, Lattice

WEIGHTS = {"am": 1.0, "lm": 0.5, "words": -0.25}


def ways(lattice, floor=-math.inf):
    """The paths of at least this score as words and named sums, in no order."""
    return sorted(
        (
            words,
            sorted(
                (name, round(value, 6)) for name, value in named_sums(lattice, arcs, final).items()
            ),
        )
        for words, arcs, final in all_paths(lattice)
        if path_score(lattice, WEIGHTS, arcs, final) >= floor
    )


def labelled(seed, **options):
    """A random lattice whose arcs have the index as an extra, so that they are known again."""
    lattice = random_lattice(seed, **options)
    arcs, finals = range(len(lattice.words)), range(len(lattice.finals))
    return lattice.take(
        arcs, finals, extra={"n": tuple(map(str, arcs))}, final_extra={"n": tuple(map(str, finals))}
    )


@pytest.mark.parametrize("beam", [0.0, 0.5, 2.0, 100.0])
def test_beam_keeps_exactly_the_arcs_of_paths_within_it(beam):
    for seed in range(60):
        lattice = labelled(seed)
        scores = [
            path_score(lattice, WEIGHTS, arcs, final) for _, arcs, final in all_paths(lattice)
        ]
        near = [
            way
            for way, score in zip(all_paths(lattice), scores, strict=True)
            if score >= max(scores) - beam - 1e-9
        ]
        pruned = prune(lattice, WEIGHTS, beam=beam)
        assert {int(n) for n in pruned.extra["n"]} == {arc for _, arcs, _ in near for arc in arcs}
        assert {int(n) for n in pruned.final_extra["n"]} == {final for _, _, final in near}
        assert ways(pruned, max(scores) - beam - 1e-9) == ways(lattice, max(scores) - beam - 1e-9)


@pytest.mark.parametrize("budget", [0, 1, 3, 6, 10])
def test_budget_keeps_the_best_paths(budget):
    for seed in range(60):
        lattice = labelled(seed)
        paths = [
            (path_score(lattice, WEIGHTS, arcs, final), arcs, final)
            for _, arcs, final in all_paths(lattice)
        ]
        top = max(score for score, _, _ in paths)
        pruned = prune(lattice, WEIGHTS, arcs=budget)
        kept = {int(n) for n in pruned.extra["n"]}
        shortest = min(len(arcs) for score, arcs, _ in paths if score > top - 1e-9)
        longest = max(len(arcs) for score, arcs, _ in paths if score > top - 1e-9)
        assert len(kept) <= max(budget, longest)
        assert len(kept) >= min(shortest, len(lattice.words))
        assert best(pruned, WEIGHTS).score == pytest.approx(top)
        values = {
            arc: max((score for score, arcs, _ in paths if arc in arcs), default=-math.inf)
            for arc in range(len(lattice.words))
        }
        lost = [value for arc, value in values.items() if arc not in kept]
        assert (
            min((values[arc] for arc in kept), default=top) >= max(lost, default=-math.inf) - 1e-9
        )
        finals = {
            final: max((score for score, _, end in paths if end == final), default=-math.inf)
            for final in range(len(lattice.finals))
        }
        assert all(
            value > max(lost, default=-math.inf) - 1e-9
            for f, value in finals.items()
            if str(f) in pruned.final_extra["n"]
        )


def test_budget_uses_up_what_it_can():
    arcs = [
        Arc(s, s + 1, word, {"am": -score})
        for s in range(3)
        for word, score in (("a", 0), ("b", 1 + s), ("c", 9))
    ]
    lattice = Lattice.of("u", 4, 0, arcs, [Final(3)])
    sizes = [len(prune(lattice, {"am": 1.0}, arcs=budget).words) for budget in range(11)]
    assert sizes == [3, 3, 3, 3, 4, 5, 6, 7, 8, 9, 9]
    assert prune(lattice, {"am": 1.0}, arcs=5).words == ("a", "b", "a", "b", "a")
    assert prune(lattice, {"am": 1.0}, density=2.0).words == ("a", "b") * 3
    assert prune(lattice, {"am": 1.0}, beam=2.0, arcs=9).words == ("a", "b", "a", "b", "a")


def test_impossible_paths_always_go():
    for seed in range(60):
        lattice = random_lattice(seed, impossible=0.15)
        expected = sentences(lattice, WEIGHTS)
        if not expected:
            with pytest.raises(UserError, match="no possible path"):
                prune(lattice, WEIGHTS)
            continue
        pruned = prune(lattice, WEIGHTS)
        assert sentences(pruned, WEIGHTS) == pytest.approx(expected)
        assert all(np.isfinite(column).all() for column in pruned.scores.values())
