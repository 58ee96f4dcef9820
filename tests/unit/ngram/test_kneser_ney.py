"""The estimator against a slow one from dictionaries of tuples, which follows Chen and Goodman's
text and lmplz's conventions.
"""

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lmtools.ngram.arpa import spell
from lmtools.ngram.counts import count, index
from lmtools.ngram.kneser_ney import FALLBACK, discount, estimate
from lmtools.ngram.sentences import SYMBOLS

corpora = st.lists(
    st.lists(st.sampled_from("aaaabbbcd"), min_size=1, max_size=9), min_size=1, max_size=40
)


def estimated(corpus, order, memory=1 << 30, min_counts=()):
    """The text as ids, the n-grams with what the estimator gave them, the estimate."""
    text = index(corpus)
    grams = count(text, order, memory, min_counts=min_counts)
    return text, grams, estimate(grams, memory)


class Slow:
    """Interpolated modified Kneser-Ney of `corpus`, recursively by definition."""

    def __init__(self, corpus, order):
        self.order = order
        self.occurrences = Counter()
        for sentence in corpus:
            words = ("<s>", *sentence, "</s>")
            for end in range(1, len(words)):
                self.occurrences.update(
                    words[start : end + 1] for start in range(max(0, end - order + 1), end + 1)
                )
        self.vocabulary = {"<unk>", "</s>", *(word for sentence in corpus for word in sentence)}
        self.number = {
            word: i
            for i, word in enumerate(dict.fromkeys((*SYMBOLS, *(w for s in corpus for w in s))))
        }
        left = defaultdict(set)
        for words in self.occurrences:
            left[words[1:]].add(words[0])
        self.count = {
            w: n if len(w) == order or w[0] == "<s>" else len(left[w])
            for w, n in self.occurrences.items()
        }
        self.followers = defaultdict(list)
        for words, n in self.count.items():
            self.followers[words[:-1]].append(n)
        self.amounts = [self.discounts(n) for n in range(1, order + 1)]

    def tally(self, n):
        """N-grams by adjusted count; of the last one's suffixes the occurrences."""
        last = max(self.occurrences, key=lambda w: ([self.number[x] for x in reversed(w)], len(w)))
        odd = last[-n:] if n < self.order and len(last) >= n else None
        return Counter(
            self.occurrences[w] if w == odd else c for w, c in self.count.items() if len(w) == n
        )

    def discounts(self, n):
        t = self.tally(n)
        if not (t[1] and t[2] and t[3]):
            return FALLBACK
        y = t[1] / (t[1] + 2 * t[2])
        amounts = tuple(j - (j + 1) * y * t[j + 1] / t[j] for j in (1, 2, 3))
        # whether a discount of 0 is in range depends on rounding
        assume(min(map(abs, amounts)) > 1e-6)
        return amounts if all(0 <= d <= j for j, d in enumerate(amounts, 1)) else FALLBACK

    def backoff(self, context):
        counts = self.followers[context]
        return (
            sum(self.amounts[len(context)][min(n, 3) - 1] for n in counts) / sum(counts)
            if counts
            else 1.0
        )

    def prob(self, words):
        if not words:
            return 1 / len(self.vocabulary)
        n = self.count.get(words, 0)
        own = n - self.amounts[len(words) - 1][min(n, 3) - 1] if n else 0
        return own / sum(self.followers[words[:-1]]) + self.backoff(words[:-1]) * self.prob(
            words[1:]
        )


@settings(max_examples=60, deadline=None)
@given(corpora, st.integers(1, 6), st.sampled_from([1, 2000, 1 << 30]))
def test_equals_the_definition(corpus, order, memory):
    slow = Slow(corpus, order)
    text, grams, made = estimated(corpus, order, memory)
    for n, gram in enumerate(grams, 1):
        assert made.discounts[n - 1] == pytest.approx(slow.amounts[n - 1], rel=1e-5, abs=1e-6)
        prob, backoff = gram.prob.read(), gram.backoff.read()
        for row, ids in enumerate(spell(grams[:n], 0, len(gram))):
            words = tuple(text.vocabulary[i] for i in ids)
            assert prob[row] == pytest.approx(
                1 if words == ("<s>",) else slow.prob(words), rel=1e-5
            )
            if n < order:
                assert backoff[row] == pytest.approx(slow.backoff(words), rel=1e-5)


@pytest.mark.parametrize(
    ("tally", "expected"),
    [
        ([0, 10, 4, 2, 1], (1 - 2 * (5 / 9) * 0.4, 2 - 3 * (5 / 9) * 0.5, 3 - 4 * (5 / 9) * 0.5)),
        ([9, 10, 4, 2, 0], (1 - 2 * (5 / 9) * 0.4, 2 - 3 * (5 / 9) * 0.5, 3)),
        ([0, 0, 4, 2, 1], None),
        ([0, 10, 0, 2, 1], None),
        ([0, 10, 4, 0, 1], None),
        ([0, 10, 1, 9, 1], None),  # D2 below 0
    ],
)
def test_discounts_of_counts_of_counts(tally, expected):
    made = discount(np.array(tally))
    assert made == (expected and pytest.approx(expected, rel=1e-6))


def test_the_orders_without_discounts_are_named():
    text, grams, made = estimated([["a", "b"]], 3)
    assert made.fallback == [1, 2, 3]
    assert made.discounts == [FALLBACK] * 3
    # p(a) = (1 - D1)/3 + gamma/4 with gamma = D1: one continuation each of a, b, </s>; four words
    # with <unk>
    prob = grams[0].prob.read()
    assert prob[text.vocabulary.index("a")] == pytest.approx(0.5 / 3 + 0.5 / 4)
    assert math.isclose(prob.sum() - 1, 1)  # all words, and <s> with its 1


def test_cut_offs_leave_a_distribution_after_every_context():
    corpus = [list("abcab"), list("abd"), list("bca"), list("abcde")]
    text, grams, _ = estimated(corpus, 3, min_counts=(1, 2, 2))
    for gram in grams[1:]:
        assert 0 < gram.size == gram.kept.read().sum() < len(gram)
    words = np.arange(len(text.vocabulary))
    lower = np.where(words == 1, 0, grams[0].prob.read())  # <s> is no word
    assert lower.sum() == pytest.approx(1)
    kept = grams[1].kept.read()
    context, word = spell(grams[:2], 0, len(grams[1]))[kept].T
    for history in words:
        own = context == history
        row = grams[0].backoff.read()[history] * lower
        row[word[own]] = grams[1].prob.read()[kept][own]
        assert row.sum() == pytest.approx(1)
