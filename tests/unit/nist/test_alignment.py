"""Alignments of networks against all paths of small ones; tests/interop/test_sctk.py compares with
sclite.
"""

import itertools
import random

import pytest

from lmtools.base.errors import UserError
from lmtools.evaluate.metrics import Rules
from lmtools.nist.alignment import (
    NULL,
    align_texts,
    build_network,
    fill_table,
    matching_cost,
    passing_cost,
    split_tokens,
)

BOTH = Rules(optional=True, fragments=True)


def paths(tokens):
    """All sequences of words of the tokens of `split_tokens`."""
    choices = [
        [[token]] if isinstance(token, str) else [p for part in token for p in paths(part)]
        for token in tokens
    ]
    return [list(itertools.chain(*parts)) for parts in itertools.product(*choices)]


def plain_cost(ref, hyp):
    """The least cost of two sequences of words, by the textbook's recursion."""
    best = {(-1, -1): 0.0}
    for i, j in itertools.product(range(-1, len(ref)), range(-1, len(hyp))):
        costs = []
        if i >= 0:
            costs.append(best[i - 1, j] + passing_cost(ref[i]))
        if j >= 0:
            costs.append(best[i, j - 1] + passing_cost(hyp[j]))
        if i >= 0 and j >= 0:
            costs.append(best[i - 1, j - 1] + matching_cost(ref[i], hyp[j]))
        best[i, j] = min(costs) if costs else 0.0
    return best[len(ref) - 1, len(hyp) - 1]


def make_text(rng, depth=0):
    parts = []
    for _ in range(rng.randint(0 if not depth else 1, 4 - depth)):
        if rng.random() < 0.25 and depth < 2:
            some = [
                NULL if rng.random() < 0.3 else make_text(rng, depth + 1)
                for _ in range(rng.randint(1, 3))
            ]
            parts.append("{ " + " / ".join(some) + " }")
        else:
            parts.append(rng.choice(["a", "b", "c", "(a)", "ab-", "-b"]))
    return " ".join(parts)


@pytest.mark.parametrize("rules", [Rules(), Rules(optional=True), BOTH])
def test_least_cost_of_all_paths(rules):
    rng = random.Random(1)
    for _ in range(120):
        ref, hyp = make_text(rng), make_text(rng)
        first, second = build_network(ref, rules), build_network(hyp, rules)
        table = fill_table(first, second)
        found = min(table[a][b] for a in first.ends for b in second.ends)
        known = {word.written: word for word in first.words + second.words}
        least = min(
            plain_cost([known[word] for word in left], [known[word] for word in right])
            for left in paths(split_tokens(ref))
            for right in paths(split_tokens(hyp))
        )
        assert found == pytest.approx(least, abs=1e-5), (ref, hyp)


@pytest.mark.parametrize(
    ("ref", "hyp", "rules", "steps"),
    [
        ("he is gone", "{ he is / he has } gone", BOTH, "CCC"),
        ("a (uh) b", "a b", BOTH, "CCC"),
        ("a (uh) b", "a b", Rules(), "CDC"),
        ("a bob- c", "a bobby c", BOTH, "CCC"),
        ("a bob- c", "a bobby c", Rules(), "CSC"),
        ("a { um / @ } b", "A B", Rules(), "CC"),
        ("", "a", BOTH, "I"),
        ("", "", BOTH, ""),
        ("a b* c;tag", "a b c", Rules(), "CCC"),
    ],
)
def test_steps(ref, hyp, rules, steps):
    pairs = align_texts(ref, hyp, rules)
    assert pairs.steps == steps
    counts = pairs.counts
    assert counts.length == len(steps) - steps.count("I")
    assert counts.errors == sum(map(steps.count, "SDI"))


@pytest.mark.parametrize("text", ["{ a / b", "a }", "a{b", "{" * 80 + "}" * 80])
def test_braces_that_are_no_alternation(text):
    with pytest.raises(UserError, match=r"alternations|inside a word"):
        align_texts(text, "a", Rules())
