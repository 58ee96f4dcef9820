"""ROVER's alignment and votes by hand; tests/interop/test_rover.py has NIST's program as judge."""

import itertools
import random
import tracemalloc

import pytest

from lmtools.base.errors import UserError
from lmtools.networks import rover
from lmtools.networks.rover import NOTHING, Token, Vote, align_systems, elect, trace_back


def outputs(*texts):
    return [[Token(word, 0.5) for word in text] for text in texts]


def words(rows):
    return ["".join(token.word or "@" for token in row) for row in rows]


def test_slots_of_three_systems():
    assert words(align_systems(outputs("abc", "axc", "bc"))) == ["aa@", "bxb", "ccc"]
    assert words(align_systems(outputs("ac", "abc", "abc"))) == ["aaa", "@bb", "ccc"]
    assert align_systems(outputs("", "")) == []
    assert words(align_systems(outputs("", "ab"))) == ["@a", "@b"]


def cost(rows, steps):
    """Cost of an alignment in NIST's units."""
    total, used = 0.0, {slot for slot, token in steps if slot is not None and token}
    for slot, row in enumerate(rows):
        if slot not in used:
            total += min(0.001 if token is NOTHING else 3 for token in row)
    for slot, token in steps:
        if slot is None:
            total += 3
        elif token:
            prices = [0 if t.word == token.word else 1 if t is NOTHING else 4 for t in rows[slot]]
            total += min(prices)
    return total


@pytest.mark.parametrize("seed", range(40))
def test_alignment_is_cheapest(seed):
    rng = random.Random(seed)
    first, second, third = ("".join(rng.choices("ab", k=rng.randint(0, 4))) for _ in range(3))
    rows = align_systems(outputs(first, second))
    output = outputs(third)[0]
    costs = []
    for places in itertools.product([None, *range(len(rows))], repeat=len(output)):
        placed = [place for place in places if place is not None]
        if placed == sorted(set(placed)):
            costs.append(cost(rows, list(zip(places, output, strict=True))))
    steps = trace_back(rows, output)
    assert [token for _, token in steps if token] == output
    assert cost(rows, steps) == pytest.approx(min(costs))


@pytest.mark.parametrize("seed", range(40))
def test_a_narrow_band_changes_nothing(seed):
    """Whatever band the search begins with, the way is that of the whole table, ties included."""
    rng = random.Random(seed)
    letters = "ab" if seed % 2 else "abcdefgh"
    first, second, third = ("".join(rng.choices(letters, k=rng.randint(0, 30))) for _ in range(3))
    rows = align_systems(outputs(first, second))
    output = outputs(third)[0]
    whole = trace_back(rows, output, 100)
    assert trace_back(rows, output, 0) == trace_back(rows, output, 3) == whole


def test_long_outputs_take_memory_of_the_band():
    """A way through 3,000 slots: the whole table would be 27 MB of moves alone."""
    rng = random.Random(1)
    text = rng.choices([f"w{number}" for number in range(500)], k=3000)
    other = [word if rng.random() > 0.02 else "x" for word in text if rng.random() > 0.01]
    tracemalloc.start()
    rows = align_systems(outputs(text, other))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(rows) == 3000 and most < 8e6


def test_too_long_outputs_are_refused(monkeypatch):
    monkeypatch.setattr(rover, "MOST", 1000)
    with pytest.raises(UserError, match="50 words to align with 60 slots are too many; cut the"):
        align_systems(outputs("a" * 60, "b" * 50))


ROW = (
    Token("a", 0.2, (0.0, 1.0)),
    Token("b", 0.9, (0.5, 1.0)),
    Token("a", 0.4, (0.2, 1.2)),
    NOTHING,
)


@pytest.mark.parametrize(
    ("vote", "winner", "confidence"),
    [
        (Vote(), "a", 0.3),  # two of four
        (Vote("average", 0.0, 0.5), "b", 0.9),
        (Vote("average", 0.9, 0.5), "a", 0.3),  # .45 + .03 against .225 + .09
        (Vote("maximum", 0.0, 0.95), "", 0.95),
        (Vote("share", 0.0, 0.0), "b", 0.9),  # .9 of 1.5
        (Vote("share", 0.5, 0.0), "a", 0.3),  # .25 + .2 against .125 + .3
        (Vote(trust=(1, 3, 1, 1)), "b", 0.9),
    ],
)
def test_votes(vote, winner, confidence):
    (token,) = elect([ROW], vote)
    assert (token.word, token.confidence) == (winner, pytest.approx(confidence))


def test_times_are_means():
    assert elect([ROW], Vote())[0].time == pytest.approx((0.1, 1.1))
    assert elect([ROW], Vote("maximum", 0.0, 0.95))[0].time is None
