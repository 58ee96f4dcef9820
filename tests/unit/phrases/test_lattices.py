"""Phrases on lattices against the values of all their paths' words."""

import math
import random
from itertools import pairwise

import lattices
import numpy as np
import pytest

from lmtools.lattice import as_nbest
from lmtools.lattice.expand import expand
from lmtools.phrases.glossary import make_glossary
from lmtools.phrases.matching import PhraseAutomaton, PhrasePrefixes, split_text


def draw_forms(rng):
    """Phrases over the letters of the lattices, many of which contain each other."""
    words = [
        tuple(rng.choice(lattices.WORDS) for _ in range(rng.randint(1, 4)))
        for _ in range(rng.randint(0, 6))
    ]
    return [(form, rng.choice([0.5, 1, 2.25, len(form)]), " ".join(form)) for form in words]


@pytest.mark.parametrize("seed", range(150))
def test_paths(seed):
    rng = random.Random(seed)
    lattice = lattices.random_lattice(rng)
    automaton = PhraseAutomaton(draw_forms(rng))
    weights = {"am": 1.0, "lm": 0.5, "phrases": 1.5}
    expanded, messages = expand(lattice, {"phrases": PhrasePrefixes(automaton)}, weights)
    assert not messages
    before, after = (lattices.all_paths(each) for each in (lattice, expanded))
    assert sorted(words for words, *_ in before) == sorted(words for words, *_ in after)
    for words, arcs, final in after:
        bonus = lattices.named_sums(expanded, arcs, final)["phrases"]
        assert bonus == automaton.value(words), words
    # the n best are those of the expanded list
    totals = {}
    for words, arcs, final in before:
        sums = lattices.named_sums(lattice, arcs, final)
        value = sums["am"] + 0.5 * sums["lm"] + 1.5 * automaton.value(words)
        totals[words] = max(value, totals.get(words, -math.inf))
    best = as_nbest(expanded, weights, 100, total=True).hyps
    for hyp in best:
        assert hyp.scores["total"] == pytest.approx(totals[tuple(hyp.text.split())], abs=1e-9)
    assert len(best) == min(100, len(totals))
    assert all(left.scores["total"] >= right.scores["total"] for left, right in pairwise(best))


def test_words_of_several_tokens():
    automaton = make_glossary(["New York", "北京"]).of("u")
    prefixes = PhrasePrefixes(automaton)
    for text in ("in New-York, now", "in new york", "我在北京 new"):
        node, total = np.array([prefixes.start]), 0.0
        for word in text.split():
            bonus, node = prefixes.words(node, [word])
            total += bonus[0]
        assert total == automaton.value(split_text(text)) > 0
