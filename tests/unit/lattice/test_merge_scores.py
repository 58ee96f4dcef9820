import math

import pytest
from hypothesis import given
from hypothesis import settings as limited
from hypothesis import strategies as st
from lattices import all_paths, named_sums, path_score, random_lattice

from lmtools.base.errors import UserError
from lmtools.lattice.weights import merge_scores
from lmtools.types import Arc, Final, Lattice

WEIGHTS = [
    {"am": 1, "lm": 8, "words": -0.5},
    {"am": 0.1, "lm": 1},
    {"am": 2},
    {"am": 1, "lm": -1, "words": 0},
]


@limited(max_examples=40, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(WEIGHTS), st.sampled_from(["lm", "graph"]))
def test_kept_and_folded_scores_add_up_to_the_weighted_ones(seed, weights, into):
    lattice = random_lattice(seed, impossible=0.05)
    folded = merge_scores(lattice, weights, into)
    assert list(folded.scores) == list(folded.final_scores) == ["am", into]
    for _, arcs, final in all_paths(lattice):
        sums = named_sums(folded, arcs, final)
        assert sums["am"] == named_sums(lattice, arcs, final)["am"]
        assert sums["am"] + sums[into] == pytest.approx(
            path_score(lattice, weights, arcs, final) / weights["am"], abs=1e-9
        )
    assert folded.words == lattice.words and folded.extra == lattice.extra


def test_several_scores_can_stay():
    lattice = Lattice.of(
        "u",
        2,
        0,
        [Arc(0, 1, "a", {"am": -4.0, "graph": -1.0, "nn": -3.0})],
        [Final(1, {"nn": -1.0})],
    )
    folded = merge_scores(
        lattice, {"am": 0.5, "graph": 1, "nn": 2, "words": 0.25}, "lm", ("am", "graph")
    )
    assert {name: column.tolist() for name, column in folded.scores.items()} == {
        "am": [-4.0],
        "graph": [-1.0],
        "lm": [-12.5],
    }
    assert folded.final_scores["lm"].tolist() == [-4.0]


def test_impossible_arcs_stay_impossible():
    arcs = [
        Arc(0, 1, "a", {"am": -math.inf, "lm": -1.0}),
        Arc(0, 1, "b", {"am": -1.0, "lm": -math.inf}),
    ]
    folded = merge_scores(Lattice.of("u", 2, 0, arcs, [Final(1)]), {"am": 1, "lm": 2})
    assert folded.scores["am"].tolist() == [-math.inf, -1.0]
    assert folded.scores["lm"].tolist() == [0.0, -math.inf]


def test_refusals():
    lattice = random_lattice(1)
    for weights, into in (
        ({"lm": 1}, "lm"),
        ({"am": 0, "lm": 1}, "lm"),
        ({"am": -1, "lm": 1}, "lm"),
        ({"am": 1}, "am"),
    ):
        with pytest.raises(
            UserError, match=f"{lattice.utt}: scores can be folded into '{into}' only where 'am'"
        ):
            merge_scores(lattice, weights, into)
    with pytest.raises(UserError, match="no score 'graph' in the lattice; keep some of: am, lm"):
        merge_scores(lattice, {"am": 1}, "lm", ("am", "graph"))
    with pytest.raises(UserError, match="no score 'nn'"):
        merge_scores(lattice, {"am": 1, "nn": 1})
