import dataclasses
import functools

import jiwer
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.evaluate.edits import Counts, align

sentences = st.lists(st.sampled_from(["a", "b", "c", "é", "𝄞", "long-word"]), max_size=9)


def brute_force(ref, hyp):
    """The Levenshtein distance, straight from its definition."""

    @functools.cache
    def distance(i, j):
        if not (i and j):
            return i + j
        return min(
            distance(i - 1, j) + 1,
            distance(i, j - 1) + 1,
            distance(i - 1, j - 1) + (ref[i - 1] != hyp[j - 1]),
        )

    return distance(len(ref), len(hyp))


@settings(max_examples=200, deadline=None)
@given(sentences, sentences)
def test_fewest_errors_and_their_alignment(ref, hyp):
    counts = align(ref, hyp).counts
    assert counts.errors == brute_force(ref, hyp)
    assert counts.length == len(ref)
    assert counts.insertions - counts.deletions == len(hyp) - len(ref)
    steps = align(ref, hyp).steps
    left, right = iter(ref), iter(hyp)
    for step in steps:
        words = [next(side) for side, never in ((left, "I"), (right, "D")) if step != never]
        assert step in "DI" or (step == "C") == (words[0] == words[1])
    assert [*left, *right] == []
    assert Counts(*map(steps.count, "SDI"), len(ref)) == counts


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(sentences, sentences), min_size=1, max_size=5))
def test_jiwer_counts_the_same(pairs):
    rows = [dataclasses.astuple(align(*pair).counts) for pair in pairs]
    total = Counts(*map(sum, zip(*rows, strict=True)))
    theirs = jiwer.process_words(
        *([" ".join(words) for words in side] for side in zip(*pairs, strict=True))
    )
    assert (total.substitutions, total.deletions, total.insertions) == (
        theirs.substitutions,
        theirs.deletions,
        theirs.insertions,
    )
    assert total.rate == 100 * theirs.wer or abs(total.rate - 100 * theirs.wer) < 1e-9


def test_characters_align_as_words_do():
    assert align("finch", "fins").counts == Counts(1, 1, 0, 5)
    assert align("ab", "b").steps == "DC"


def test_empty_references_count_their_insertions():
    assert align([], ["a", "b"]).counts == Counts(0, 0, 2, 0)
    assert align([], ["a", "b"]).counts.rate == 200
    assert align([], []).counts.rate == 0
