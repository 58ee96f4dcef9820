"""Merging, ranking and combining what was heard."""

import math

import pytest

from lmtools.decode.whisper import (
    NOTHING,
    Candidate,
    be_silent,
    combine_windows,
    merge_equal,
    rank_rest,
)


def make(text: str, am: float, length: int = 1) -> Candidate:
    return Candidate(text, am, length, am)


def test_equal_words_are_merged_into_the_first():
    made = merge_equal(
        [make(" Hello, you.", -1.0, 4), make("hello you", -2.0), make(" Hello", -3.0)]
    )
    assert [(one.text, one.am, one.length) for one in made] == [
        (" Hello, you.", -1.0, 4),
        (" Hello", -3.0, 1),
    ]
    assert made[0].mass == pytest.approx(math.log(math.exp(-1) + math.exp(-2)))
    assert made[1].mass == -3.0


def test_the_first_stays_and_the_others_are_ranked_by_token():
    answer, long, short = make("a", -9.0), make("b", -6.0, 6), make("c", -2.0, 1)
    assert rank_rest([answer, short, long]) == [answer, long, short]
    assert rank_rest([]) == []


def test_windows_have_the_best_combinations():
    windows = [[make("A", -1.0), make(" B", -2.0)]]
    windows += [[make(" c", -0.5), make("d", -0.75), make("e", -3.0)]]
    whole = combine_windows(windows, 3)
    assert [(" ".join(one.text.split()), one.am, one.length) for one in whole] == [
        ("A c", -1.5, 2),
        ("A d", -1.75, 2),
        ("B c", -2.5, 2),
    ]
    assert len(combine_windows(windows, 20)) == 6


def test_no_window_is_nothing_and_silence_has_its_probability():
    assert combine_windows([], 5) == [NOTHING]
    (whole,) = combine_windows([[be_silent(0.5)], [make("a", -1.0)], [be_silent(0.0)]], 5)
    assert whole.text.split() == ["a"] and whole.length == 1
    assert whole.am == pytest.approx(math.log(0.5) - 1 + math.log(1e-10))
