"""The path cover against brute force: every arc on the best of all paths over it, and exact where
it can be.
"""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lattices import all_paths, named_sums, path_score, random_lattice, words_of
from scoring import load_scorer

from lmtools.base.errors import UserError
from lmtools.score.base import Scorer
from lmtools.score.cover import approximation, cover, rescore_cover
from lmtools.types import Arc, Final, Lattice

WEIGHTS = {"am": 1.0, "lm": 0.5, "words": -0.25}
# the model reads "the", an unknown word, and nothing
VOCABULARY = ("king", "queen", "The", "xylophone", " ")


class Sum(Scorer):
    """A scorer whose tokens are characters; the score of each depends on its whole sentence."""

    kind, signature, rows = "pseudo-perplexity", {"lm": "sum"}, 7

    def prepare(self, texts):
        return [tuple(" ".join(text.split())) for text in texts]

    def cost(self, sentence):
        return len(sentence) + 1

    def unknown(self, sentence):
        return np.zeros(len(sentence), dtype=bool)

    def log_probs(self, sentences):
        return [
            np.array([-random.Random(f"{s} {i}").random() for i in range(len(s) + 1)])
            for s in map("".join, sentences)
        ]


@settings(max_examples=150)
@given(seed=st.integers(0, 10**6), impossible=st.sampled_from([0.0, 0.3]))
def test_every_arc_and_end_has_the_best_path_over_it(seed, impossible):
    lattice = random_lattice(seed, impossible=impossible)
    ways = [(a, end, path_score(lattice, WEIGHTS, a, end)) for _, a, end in all_paths(lattice)]
    ways = [way for way in ways if way[2] > -math.inf]
    if not ways:
        with pytest.raises(UserError, match="no possible path"):
            cover(lattice, WEIGHTS)
        return
    result = cover(lattice, WEIGHTS)
    known = {(arcs, final): score for arcs, final, score in ways}
    assert len(set(result.paths)) == len(result.paths) and set(result.paths) <= known.keys()
    places = [*result.of_arc, *result.of_final]
    assert {place for place in places if place >= 0} == set(range(len(result.paths)))
    covers = [[way for way in ways if arc in way[0]] for arc in range(len(result.of_arc))]
    covers += [[way for way in ways if way[1] == end] for end in range(len(result.of_final))]
    for number, (place, over) in enumerate(zip(places, covers, strict=True)):
        assert (place >= 0) == bool(over)
        if over:
            arcs, final = result.paths[place]
            assert number in arcs or final == number - len(lattice.words)
            assert known[arcs, final] == pytest.approx(max(score for _, _, score in over), abs=1e-9)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_an_arc_has_the_score_of_its_word_in_its_own_sentence(seed):
    """Character by character, by hand."""
    lattice, scorer = random_lattice(seed, words=("abc", "de", "f")), Sum()
    rescored = rescore_cover(lattice, scorer, {**WEIGHTS, "new": 3.0}, "new")
    result = cover(lattice, WEIGHTS)
    values = [*rescored.scores["new"], *rescored.final_scores["new"]]
    places = [*result.of_arc, *result.of_final]
    for number, (place, value) in enumerate(zip(places, values, strict=True)):
        if place < 0:
            assert value == 0
            continue
        arcs, _ = result.paths[place]
        text = " ".join(words_of(lattice, arcs))
        (scores,) = scorer.log_probs([tuple(text)])
        if number >= len(lattice.words):
            assert value == scores[-1]
            continue
        end = len(" ".join(words_of(lattice, arcs[: arcs.index(number) + 1])))
        # the space counts with the word after it
        begin = len(" ".join(words_of(lattice, arcs[: arcs.index(number)])))
        assert value == pytest.approx(scores[begin:end].sum())
    assert replace(rescored, scores=lattice.scores, final_scores=lattice.final_scores) == lattice


@pytest.fixture(scope="module")
def scorers(trained):
    return {name: load_scorer(str(path), "cpu") for name, path in trained.items()}


def linear(words) -> Lattice:
    arcs = [Arc(i, i + 1, word, {"am": -1.0}) for i, word in enumerate(words)]
    return Lattice.of("one", len(words) + 1, 0, arcs, [Final(len(words), {"am": 0.0})])


@pytest.mark.parametrize("family", ["tta", "masked", "causal", "lstm"])
def test_a_lattice_of_one_path_gets_its_sentences_scores(scorers, family):
    scorer = scorers[family]
    lattice = linear(["king", None, "xylophone", " ", "The", "queen"])
    rescored = rescore_cover(lattice, scorer, {"am": 1.0}, "lm")
    (scores,) = scorer.log_probs(scorer.prepare(["king xylophone   The queen"]))
    spread = [scores[0], 0, scores[1], 0, scores[2], scores[3]]
    assert rescored.scores["lm"] == pytest.approx(spread, abs=1e-6)
    assert rescored.final_scores["lm"] == pytest.approx(scores[-1:])


def tree(rng: random.Random) -> Lattice:
    """A lattice whose paths never meet again."""
    arcs, states = [], 1
    for source in range(6):
        for _ in range(rng.randint(1, 2) if source < states else 0):
            word = rng.choice([*VOCABULARY, None])
            arcs.append(Arc(source, states, word, {"am": rng.gauss(0, 1)}))
            states += 1
    leaves = sorted(set(range(states)) - {arc.source for arc in arcs})
    finals = [Final(state, {"am": rng.gauss(0, 1)}) for state in leaves]
    return Lattice.of("tree", states, 0, arcs, finals)


@pytest.mark.parametrize("family", ["causal", "lstm"])
def test_a_left_to_right_model_is_exact_on_a_tree(scorers, family):
    for seed in range(12):
        lattice = tree(random.Random(seed))
        rescored = rescore_cover(lattice, scorers[family], {"am": 1.0}, "lm")
        for words, arcs, final in all_paths(lattice):
            (scores,) = scorers[family].log_probs(scorers[family].prepare([" ".join(words)]))
            assert named_sums(rescored, arcs, final)["lm"] == pytest.approx(scores.sum(), abs=1e-4)


@pytest.mark.parametrize("seed", range(8))
def test_the_approximation_is_what_brute_force_says(scorers, seed):
    lattice = random_lattice(seed, words=VOCABULARY)
    scorer = scorers["tta"]
    weights = {**WEIGHTS, "tta": 0.7}
    rescored = rescore_cover(lattice, scorer, weights, "tta")
    best = {}
    for words, arcs, final in all_paths(lattice):
        score = path_score(lattice, WEIGHTS, arcs, final)
        if score > best.get(words, (-math.inf,))[0]:
            best[words] = score, arcs, final
    exact = {words: scorer.log_probs(scorer.prepare([" ".join(words)]))[0].sum() for words in best}
    near = {words: named_sums(rescored, *way[1:])["tta"] for words, way in best.items()}
    differences = [abs(near[words] - exact[words]) for words in best]
    for given_lattice in (lattice, rescored):
        found = approximation(given_lattice, scorer, weights, "tta", n=10**6)
        assert found["sentences"] == len(best) and found["words"] == sum(map(len, best))
        assert found["sentence_mean"] == pytest.approx(np.mean(differences), abs=1e-4)
        assert found["sentence_max"] == pytest.approx(max(differences), abs=1e-4)
        choices = [
            max(best, key=lambda words, scores=scores: best[words][0] + 0.7 * scores[words])
            for scores in (near, exact)
        ]
        assert found["agrees"] == (choices[0] == choices[1])
        assert not found["words"] or found["word_mean"] <= found["word_max"]
        assert found["sentence_mean"] <= found["sentence_max"]
    alone = approximation(lattice, scorer, weights, "tta", n=1)
    # the best path has its sentence's own scores
    assert alone["sentence_max"] < 1e-4 and alone["agrees"] == 1
    # no words, no figure of words: never 0
    assert alone["word_max"] < 1e-4 if alone["words"] else math.isnan(alone["word_max"])
    assert math.isnan(alone["word_mean"]) == (not alone["words"])


def test_a_taken_name_is_refused(scorers):
    with pytest.raises(UserError, match="has a score 'am' already"):
        rescore_cover(linear(["king"]), scorers["tta"], {"am": 1.0}, "am")
